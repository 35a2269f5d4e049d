"""The options of the target."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.errors import UsageError
from smelt.targets.ort.choices import CHOICES


@dataclass(frozen=True)
class Options:
    """``name``: the file is called ``NAME.onnx``. ``costs``: a file of ``smelt tune``; empty for
    the table that smelt brings. ``keep``: choices, with commas, that stay as the model has them, or
    ``all``.

    Raises UsageError E660 for what they cannot be.
    """

    name: str = "model"
    costs: str = ""
    keep: str = ""

    def __post_init__(self) -> None:
        if not self.name.strip(".") or set(self.name) & set("/\\\0:"):
            raise _wrong(f"name={self.name!r}", "it is the name of a file, without a folder")
        for each in self.kept - {"all"} - CHOICES.keys():
            raise _wrong(f"keep={each!r}", f"choices are {', '.join(CHOICES)}, or all")

    @property
    def kept(self) -> set[str]:
        """The choices that stay as they are."""
        return {each.strip() for each in self.keep.split(",") if each.strip()}


def _wrong(option: str, why: str) -> UsageError:
    return UsageError("E660", f"target 'ort' takes no option {option}", why=why)
