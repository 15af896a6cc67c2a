"""The one error a user sees: what is wrong, and how to mend it."""


class Refusal(Exception):  # noqa: N818 - it is an answer to the user, not a fault of the program
    """SpiderDuck will not start, or not do this, and the message says why and what to do."""
