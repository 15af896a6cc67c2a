"""The border: the only modules that speak to the outside, and the place where its errors become values.

`http` asks the web, `metadata` and `content` are the stores, `parser_pool` runs the processes that parse.
"""
