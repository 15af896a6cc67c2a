"""What stands around one request, outermost first.

`lanes` says whose turn it is; `robots_desk`, with `robots_book`, `robots` and `robots_rules`, whether it may be asked;
`guard` whether its address may be connected to; and `verdict` what the answer means. Pure where they can be: time is
an argument.
"""
