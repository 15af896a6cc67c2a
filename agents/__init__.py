"""The stages, in the order a tweet meets them: extract, decide, fetch, parse, archive, complete.

A stage file reads: contract, thought (pure functions), hands (the class that acts on what thought says), and last a
short `attach` with the agent in it. `pump` and `batches` are the hands all stages share. The rooms behind them:
`extracting` (URLs in tweets), `fetching` (robots, pacing, guard), `reading` (what a page says), `archiving` (WARC),
and `clients`, the only place that imports clients of the outside.
"""
