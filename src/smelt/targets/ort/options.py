"""The options of the target ``ort``."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.errors import UsageError
from smelt.targets.ort.choices import CHOICES

WEIGHTS = {"int4": 4, "int8": 8, "nf4": 4}
"""The storage types of weights and their bits."""

BLOCKS = (16, 32, 64, 128, 256)
"""The block sizes that the runtime's kernel supports."""


@dataclass(frozen=True)
class Options:
    """How the model is written; raises UsageError E660 for values that are not allowed.

    ``name``: the file is ``NAME.onnx``. ``costs``: a file of ``smelt tune``; empty for the built-in
    table. ``keep``: comma-separated choices that stay as written, or ``all``. ``weights``:
    ``int4``, ``int8`` or ``nf4``, the type of products' weights, with one scale for each ``block``
    of elements, a power of 2 from 16 on; ``symmetric``: without zero points. ``inline_limit``: if
    the weights together have more bytes than this, each of at least 64 KiB goes to
    ``NAME.onnx.data``, which the runtime memory-maps: a BERT session then opens in half the time.
    """

    name: str = "model"
    costs: str = ""
    keep: str = ""
    weights: str = ""
    block: int = 32
    symmetric: bool = True
    inline_limit: int = 1 << 22

    def __post_init__(self) -> None:
        """Raise UsageError E660 for a value that is not allowed."""
        if not self.name.strip(".") or set(self.name) & set("/\\\0:"):
            raise _option_error(f"name={self.name!r}", "it is the name of a file, without a folder")
        for each in self.kept - {"all"} - CHOICES.keys():
            raise _option_error(f"keep={each!r}", f"choices are {', '.join(CHOICES)}, or all")
        if self.weights not in ("", *WEIGHTS):
            raise _option_error(f"weights={self.weights!r}", f"types are {', '.join(WEIGHTS)}")
        if self.weights == "nf4" and not self.symmetric:
            raise _option_error("symmetric=False", "codes of nf4 have no zero points")
        if self.block not in BLOCKS:
            raise _option_error(f"block={self.block}", f"sizes are {', '.join(map(str, BLOCKS))}")
        if self.inline_limit < 0:
            raise _option_error(f"inline_limit={self.inline_limit}", "it is a number of bytes")

    @property
    def kept(self) -> set[str]:
        """The choices that stay as they are."""
        return {each.strip() for each in self.keep.split(",") if each.strip()}


def _option_error(option: str, why: str) -> UsageError:
    """Return UsageError E660 for a wrong option."""
    return UsageError(
        "E660",
        f"target 'ort' does not compile with {option}",
        why=why,
        fix="`smelt explain ort` lists the options with their types",
    )
