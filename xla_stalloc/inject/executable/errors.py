"""Why an executable keeps the offsets that XLA gave it."""


class NotRewritableError(Exception):
    """The executable has something that is not understood here; the text is a reason for people to read."""


class NotSmallerError(NotRewritableError):
    """Other offsets would bring too little.

    Attributes:
        live_bytes: The most bytes that are live at once, each block rounded up to the alignment.
    """

    def __init__(self, reason: str, live_bytes: int) -> None:
        """Takes the reason and the attribute."""
        super().__init__(reason)
        self.live_bytes = live_bytes


class RewriteError(Exception):
    """A rewritten executable might compute something else than the original; the text says where."""
