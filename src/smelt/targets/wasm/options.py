"""The options of the target ``wasm``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smelt.errors import UsageError, did_you_mean
from smelt.native.emit.names import check_identifier

KNOWN: Mapping[str, tuple[str, ...]] = {
    "weights": ("auto", "inside", "beside"),
    "quantized": ("integers", "floats", "fixed"),
}
"""The allowed values of options that are words."""

SMALL = 1 << 20
"""The most bytes of weights that ``auto`` puts into the module."""


@dataclass(frozen=True)
class Options:
    """What is written; raises UsageError E660 for values that are not allowed.

    ``name``: the first part of the names of files, and the name of the npm package. ``weights``:
    ``inside`` of ``<name>.wasm``, or ``beside`` it in ``<name>.weights``, which streams into the
    memory of the module while the module compiles; ``auto``, inside up to 1 MiB. ``plain``: also
    write ``<name>.plain.wasm`` for engines without 128-bit vectors; the JavaScript chooses when it
    loads. ``quantized``: how operators between DequantizeLinear and QuantizeLinear are computed, as
    for the target ``c``. ``images``: float inputs that also take bytes of pixels, by name with
    commas between them; a value is ``(pixel * image_scale - image_mean) / image_std``, the latter
    two one number or one for each channel.
    """

    name: str = "model"
    weights: str = "auto"
    plain: bool = True
    quantized: str = "integers"
    images: str = ""
    image_scale: float = 1 / 255
    image_mean: str = ""
    image_std: str = ""

    def __post_init__(self) -> None:
        """Raise UsageError E660 for a value that is not allowed."""
        check_identifier(self.name)
        if self.name == "package":
            why = "package.json describes the npm package, and the interface would be called so"
            raise refused("name='package'", why, "choose another with --option name=...")
        for option, known in KNOWN.items():
            value = getattr(self, option)
            if value not in known:
                one_of = f"{option} is one of {', '.join(known)}"
                fix = did_you_mean(value, known, f"use {option}={known[0]}")
                raise refused(f"{option}={value!r}", one_of, fix)

    def is_beside(self, weights_bytes: int) -> bool:
        """True if so many bytes of weights are in a file of their own."""
        return self.weights == "beside" or (self.weights == "auto" and weights_bytes > SMALL)


def refused(given: str, why: str, fix: str) -> UsageError:
    """Return error E660 for a wrong option."""
    return UsageError("E660", f"target 'wasm' does not compile with {given}", why=why, fix=fix)
