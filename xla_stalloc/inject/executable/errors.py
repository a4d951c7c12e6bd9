"""Why an executable keeps the offsets that XLA gave it."""


class NotRewritableError(Exception):
    """The executable has something that is not understood here; the text is a reason for people to read."""


class RewriteError(Exception):
    """A rewritten executable might compute something else than the original; the text says where."""
