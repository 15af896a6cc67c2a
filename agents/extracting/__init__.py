"""What the extract stage knows, all of it pure.

In the order a message meets it: `tweets` (which tweets, which URLs), `forms` (the shapes a tweet comes in), `text`
(URLs in a text), `domains` (where in a text a domain ends).
"""
