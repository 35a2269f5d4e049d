"""The options of the target."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.errors import UsageError, did_you_mean
from smelt.native.names import check_identifier

WEIGHTS = ("auto", "hex", "string", "incbin", "bin")

SMALL = 1 << 20
"""Bytes of weights up to which hexadecimal words compile in no time."""


@dataclass(frozen=True)
class Options:
    """How the library is written. Raises UsageError E660 for what it cannot be.

    ``name``: prefix of files, functions and macros. ``weights``: ``hex`` words or ``string``s in
    C; ``incbin``, a file that the assembler of gcc or clang includes; ``bin``, a file that the
    caller maps and gives to each run; ``auto``, hex up to 1 MiB and incbin beyond.
    """

    name: str = "model"
    weights: str = "auto"

    def __post_init__(self) -> None:
        check_identifier(self.name)
        if self.weights not in WEIGHTS:
            raise UsageError(
                "E660",
                f"target 'c' writes no weights as {self.weights!r}",
                why=f"weights= is one of {', '.join(WEIGHTS)}",
                fix=did_you_mean(self.weights, WEIGHTS, ""),
            )

    def form(self, weights_bytes: int) -> str:
        """How so many bytes of weights are written."""
        if self.weights != "auto":
            return self.weights
        return "hex" if weights_bytes <= SMALL else "incbin"
