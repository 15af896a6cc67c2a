"""A small web to watch the service at work without the Internet: pages, short links, traps, and the tweets about them.

`sites` says what each address answers, `pages/` holds the texts, `web` serves them on loopback,
`tweets.jsonl` shares them. All names end in `.example` or are one of the `example` domains (RFC 2606), so
nothing here can be mistaken for, or reach, a real site.
"""
