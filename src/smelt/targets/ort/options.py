"""The options of the target."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.errors import UsageError
from smelt.targets.ort.choices import CHOICES

WEIGHTS = {"int4": 4, "int8": 8}
"""The types that weights of products may be asked for in, and their bits."""

BLOCKS = (16, 32, 64, 128, 256)
"""How many elements may share a scale, as the runtime's kernel takes it."""


@dataclass(frozen=True)
class Options:
    """``name``: the file is called ``NAME.onnx``. ``costs``: a file of ``smelt tune``; empty for
    the table that smelt brings. ``keep``: choices, with commas, that stay as the model has them, or
    ``all``. ``weights``: ``int4`` or ``int8``, as which products read their weights, of ``block``
    elements to a scale, a power of 2 from 16 on; ``symmetric``: without zero points.
    ``inline_limit``: of weights of more bytes, those of 64 KiB and more go to ``NAME.onnx.data``,
    which the runtime maps into memory: a session of BERT opens in half the time that the copies
    out of a protobuf take.

    Raises UsageError E660 for what they cannot be.
    """

    name: str = "model"
    costs: str = ""
    keep: str = ""
    weights: str = ""
    block: int = 32
    symmetric: bool = True
    inline_limit: int = 1 << 22

    def __post_init__(self) -> None:
        if not self.name.strip(".") or set(self.name) & set("/\\\0:"):
            raise _wrong(f"name={self.name!r}", "it is the name of a file, without a folder")
        for each in self.kept - {"all"} - CHOICES.keys():
            raise _wrong(f"keep={each!r}", f"choices are {', '.join(CHOICES)}, or all")
        if self.weights not in ("", *WEIGHTS):
            raise _wrong(f"weights={self.weights!r}", f"types are {', '.join(WEIGHTS)}")
        if self.block not in BLOCKS:
            raise _wrong(f"block={self.block}", f"sizes are {', '.join(map(str, BLOCKS))}")
        if self.inline_limit < 0:
            raise _wrong(f"inline_limit={self.inline_limit}", "it is a number of bytes")

    @property
    def kept(self) -> set[str]:
        """The choices that stay as they are."""
        return {each.strip() for each in self.keep.split(",") if each.strip()}


def _wrong(option: str, why: str) -> UsageError:
    return UsageError("E660", f"target 'ort' takes no option {option}", why=why)
