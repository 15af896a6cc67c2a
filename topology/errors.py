"""The errors a user sees: what is wrong, and how to mend it."""


class Refusal(Exception):  # noqa: N818 - it is an answer to the user, not a fault of the program
    """SpiderDuck will not start, or not do this, and the message says why and what to do."""


class Crashed(Exception):  # noqa: N818 - a state of the worker, like Refusal
    """A service of the worker crashed while it worked. Nothing is lost: starting again goes on where it was."""
