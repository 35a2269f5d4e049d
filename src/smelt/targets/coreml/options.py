"""The options of the target ``coreml``."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.errors import UsageError, did_you_mean

IOS = {16: ("CoreML6", 7), 17: ("CoreML7", 8), 18: ("CoreML8", 9)}
"""The opset of the program and the version of the specification, by the lowest iOS."""

WORDS = {
    "precision": ("fp16", "fp32"),
    "io": ("fp32", "fp16"),
    "functions": ("one", "fixed"),
    "weights": ("dense", "compact"),
    "float64": ("refused", "float32"),
}
COLORS = ("RGB", "BGR", "GRAYSCALE")


@dataclass(frozen=True)
class ImageOption:
    """How an image becomes the numbers of an input: ``pixel * scale + bias``."""

    color: str
    scale: float
    bias: tuple[float, ...]


@dataclass(frozen=True)
class Options:
    """How the package is written; raises UsageError E660 for values that are not allowed.

    ``ios``: the lowest iOS that reads the package, 16, 17 or 18 (macOS 13, 14 or 15).
    ``precision``: floats are computed in ``fp16``, which the Neural Engine needs, or in ``fp32``.
    ``keep``: names of nodes or operators, separated by commas, that stay in float32. ``io``: the
    floats of inputs and outputs. ``sizes``: the permitted sizes of symbolic dims, as in
    ``B=1,4,8;S=64,128``, instead of all sizes within their bounds. ``default``: the sizes that Core
    ML tools show first, as in ``B=4``; by default the lowest. ``functions``: ``one`` for all sizes,
    or ``fixed``: one for each of the listed sizes. ``states``: inputs that Core ML keeps between
    runs, with the outputs that replace them, as in ``past=present``. ``images``: inputs that are
    images, as in ``x:RGB:scale:bias``. ``weights``: ``compact`` stores weights with few different
    numbers as palettes, and those with many zeros as sparse. ``float64``: ``float32`` computes
    float64 as float32, to which the other options then apply. ``check``: also write a script that
    runs the package on a Mac. ``name``: the name of the package in that script.
    """

    ios: int = 17
    precision: str = "fp16"
    keep: str = ""
    io: str = "fp32"
    sizes: str = ""
    default: str = ""
    functions: str = "one"
    states: str = ""
    images: str = ""
    weights: str = "dense"
    float64: str = "refused"
    check: bool = False
    name: str = "model"

    def __post_init__(self) -> None:
        """Raise UsageError E660 for a value that is not allowed."""
        if self.ios not in IOS:
            raise refused(f"ios={self.ios}", f"it writes for iOS {', '.join(map(str, IOS))}")
        for option, known in WORDS.items():
            value = getattr(self, option)
            if value not in known:
                why = f"{option} is one of {', '.join(known)}"
                fix = did_you_mean(value, known, f"use {option}={known[0]}")
                raise refused(f"{option}={value!r}", why, fix)
        for name in self.listed_sizes:
            if len(self.default_sizes.get(name, (1,))) != 1:
                raise refused(f"default={self.default!r}", "a dim has one default size")
        _ = self.default_sizes, self.state_names, self.image_options
        newer = {
            "functions=fixed": self.functions == "fixed",
            f"states={self.states!r}": self.states,
        }
        for given, is_given in newer.items():
            if is_given and self.ios < 18:
                raise refused(given, f"iOS {self.ios} has none", "add --option ios=18")
        if self.functions == "fixed" and not self.sizes:
            raise refused(
                "functions=fixed",
                "it writes one function for each of the listed sizes",
                "add --option sizes=B=1,4",
            )

    @property
    def further_types(self) -> frozenset[ir.DataType]:
        """The element types that these options permit besides those of the target."""
        return frozenset({ir.DataType.DOUBLE} if self.float64 == "float32" else ())

    @property
    def state_names(self) -> dict[str, str]:
        """The output that replaces each state, by the name of the input that is the state."""
        found = {}
        for part in filter(None, self.states.split(";")):
            before, equals, after = part.partition("=")
            if not (before and equals and after):
                raise refused(f"states={self.states!r}", "states are written as in past=present")
            found[before.strip()] = after.strip()
        return found

    @property
    def image_options(self) -> dict[str, ImageOption]:
        """The colour layout, scale and bias of each input that is an image, by name."""
        found = {}
        for part in filter(None, self.images.split(";")):
            name, *words = part.split(":")
            color, scale, bias = (*words, *("RGB", "1", "0")[len(words) :])[:3]
            try:
                numbers = float(scale), tuple(float(each) for each in bias.split("/"))
            except ValueError:
                numbers = 0.0, ()
            if len(words) > 3 or color not in COLORS or not numbers[0]:
                why = f"images are written as in x:RGB:0.0039:-0.5; colours are {', '.join(COLORS)}"
                raise refused(f"images={self.images!r}", why)
            found[name.strip()] = ImageOption(color, *numbers)
        return found

    @property
    def kept(self) -> frozenset[str]:
        """The nodes and operators that stay in float32."""
        return frozenset(filter(None, map(str.strip, self.keep.split(","))))

    @property
    def listed_sizes(self) -> dict[str, tuple[int, ...]]:
        """The permitted sizes by symbol."""
        return _sizes("sizes", self.sizes)

    @property
    def default_sizes(self) -> dict[str, tuple[int, ...]]:
        """The default size by symbol, a tuple of one number."""
        return _sizes("default", self.default)


def _sizes(option: str, text: str) -> dict[str, tuple[int, ...]]:
    """Return ``{"B": (1, 4)}`` for the text ``B=1,4``; raises UsageError E660 for other text."""
    found: dict[str, tuple[int, ...]] = {}
    for part in filter(None, text.split(";")):
        name, _, numbers = part.partition("=")
        try:
            sizes = tuple(sorted({int(number) for number in numbers.split(",")}))
        except ValueError:
            sizes = (0,)
        if not name.strip() or min(sizes) < 1:
            raise refused(f"{option}={text!r}", "sizes are written as in B=1,4,8;S=64,128")
        found[name.strip()] = sizes
    return found


def refused(given: str, why: str, fix: str = "") -> UsageError:
    """Return error E660 for the option ``given``, such as ``ios=15``."""
    return UsageError("E660", f"target 'coreml' does not compile with {given}", why=why, fix=fix)
