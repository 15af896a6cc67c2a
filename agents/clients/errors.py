"""What the clients say when the other side does not answer."""


class StoreUnavailable(Exception):  # noqa: N818 - it names a state of the world, not a fault of the program
    """A store is down, locked, full, corrupt or closed. Nothing was promised; the same call may be made again.

    `reason` is a sentence for the operator. Whatever a store's client raises becomes this one error, so a
    stage has one thing to wait out.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
