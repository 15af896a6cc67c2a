"""The nouns and the map.

The life of a URL, in twelve sentences:

1. A tweet arrives in `tweets`; `extract` finds every URL in it, from its entities and by Twitter's own rules.
2. Each (tweet, URL) becomes a request in `url-requests`, keyed by the URL's registered domain.
3. `decide` owns what is known of the domain's URLs: a URL fetched within its window is answered at once.
4. A URL that is being fetched gets the request attached; any other is ordered, once for all, in `fetch-requests`.
5. `fetch` owns the domain: the order waits in the domain's lane until a slot comes, or in `deferred` if that is far.
6. robots.txt is asked first, once for all; then one request goes out, to a public address only.
7. A redirect ends the fetch: whoever waited asks for the target instead, under the target's domain and its rules.
8. A page goes to `pages`, where `parse` reads what it says of itself, in a process of its own,
9. and `archive` keeps it as it came, in WARC segments.
10. How the fetch ended goes to `documents`; `settle` remembers it and sends everybody who waited to `completions`.
11. `complete` writes the rows, in batches, so that the record can be read through any of its URLs;
12. then it announces each (tweet, URL) in `url-completed`.

Read `wiring.py` next. The rooms: `names`, `records`, `outcomes`, `settings`, `events`, `errors` and `public` are nouns;
`urls` and `deflate` are pure helpers; `embedded`, `embedded_log`, `embedded_records`, `commits` and `runtime` are the
ground Faust stands on; `sources` reads input. `wiring`, `stores`, `service`, `feeding`, `run`, `worker`, `describe`,
`views/`, `commands/` and `cli` join everything; `demo/` is a small web of our own.
"""
