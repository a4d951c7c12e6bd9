"""The one error of this package."""

from __future__ import annotations


class HloError(ValueError):
    """A source is not the HLO that was expected.

    The message names the source, says what is wrong with it, and what to do next.
    """

    def __init__(self, source: str, problem: str, advice: str = "") -> None:
        """Args: where the HLO came from; what is wrong there; what the reader can do about it."""
        super().__init__(f"{source}: {problem}" + (f". {advice}" if advice else ""))
        self.source = source
        self.problem = problem
        self.advice = advice
