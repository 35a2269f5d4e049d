"""The interface of a package: names, element types, and permitted sizes of inputs and outputs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.errors import SmeltError, Unsupported, UsageError
from smelt.ir.bounds import Bounds
from smelt.ir.symbolic_dims.dims import size_of, symbols_of
from smelt.mlpackage.interface import ArrayElement, Feature, MultiArray
from smelt.mlpackage.program import Element
from smelt.targets.coreml.options import Options
from smelt.targets.legality import empty_tensor

ARRAY_ELEMENTS = {
    Element.FLOAT16: ArrayElement.FLOAT16,
    Element.FLOAT32: ArrayElement.FLOAT32,
    Element.INT32: ArrayElement.INT32,
}
SAME_BITS = "int32 with the same bits"
"""How a package has uint32."""
MOST_SHAPES = 128
"""The most enumerated shapes that Core ML documents."""


def interface_element(dtype: ir.DataType | None, options: Options) -> Element:
    """Return the element type that an input or output of an ONNX type has in the package.

    Core ML's interfaces have float16, float32 and int32, so integers and bools become int32.
    """
    if dtype == ir.DataType.FLOAT16:
        return Element.FLOAT16
    if dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return Element.FLOAT16 if options.io == "fp16" else Element.FLOAT32
    return Element.INT32


@dataclass(frozen=True)
class Sizes:
    """The permitted sizes of symbols: bounds, listed sizes of some of them, and the defaults."""

    bounds: Mapping[str, Bounds]
    listed: Mapping[str, tuple[int, ...]]
    defaults: Mapping[str, int]

    @classmethod
    def of(cls, bounds: Mapping[str, Bounds], options: Options) -> Sizes:
        """Return the sizes that bounds and options permit; raises UsageError E633 for sizes outside
        their bounds, or of a symbol that the model does not have."""
        listed = options.listed_sizes
        defaults = {name: sizes[0] for name, sizes in options.default_sizes.items()}
        for option, given in (("sizes", listed), ("default", options.default_sizes)):
            for name, sizes in given.items():
                if name not in bounds:
                    raise _wrong(option, name, "it has no bounds", f"--dim {name}=1..{max(sizes)}")
                low, high = bounds[name]
                if min(sizes) < low or max(sizes) > high:
                    fix = f"--dim {name}={min(*sizes, low)}..{max(*sizes, high)}"
                    raise _wrong(option, name, f"its bounds are {low} to {high}", fix)
        for name, (low, _) in bounds.items():
            defaults.setdefault(name, listed.get(name, (low,))[0])
        return cls(bounds, listed, defaults)

    def at(self, value: ir.Value, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape of ``value`` as numbers, with the ``sizes`` of its symbols."""
        assert value.shape is not None
        shape = [size_of(dim, sizes) for dim in value.shape]
        return tuple(dim for dim in shape if isinstance(dim, int))


def _wrong(option: str, name: str, why: str, fix: str) -> UsageError:
    """Return error E633 for the sizes that ``option`` gives to the symbol ``name``."""
    return UsageError("E633", f"the option {option} has sizes of {name!r}", why=why, fix=fix)


def multi_array(value: ir.Value, element: Element, sizes: Sizes, *, flexible: bool) -> MultiArray:
    """Return the type of an input (``flexible``) or output, as the package describes it.

    An input with symbolic dims has enumerated shapes if all its symbols have listed sizes, else a
    range of sizes for each dim. An output with symbolic dims has no described shape.
    """
    assert value.shape is not None
    kind = ARRAY_ELEMENTS[element]
    symbols = sorted(set().union(*(symbols_of(dim) for dim in value.shape)))
    if not flexible:
        shape = () if symbols else sizes.at(value, {}) or (1,)
        return MultiArray(kind, shape)
    default = sizes.at(value, sizes.defaults) or (1,)
    if not symbols:
        return MultiArray(kind, default)
    if set(symbols) <= sizes.listed.keys():
        combinations = itertools.product(*(sizes.listed[name] for name in symbols))
        shapes = [sizes.at(value, dict(zip(symbols, each, strict=True))) for each in combinations]
        ordered = sorted(dict.fromkeys(shapes), key=lambda shape: (shape != default, shape))
        return MultiArray(kind, default, enumerated=tuple(ordered))
    return MultiArray(kind, default, ranges=tuple(_range(dim, sizes) for dim in value.shape))


def _range(dim: int | ir.SymbolicDim, sizes: Sizes) -> tuple[int, int]:
    """Return the least and the greatest size of a dim, a number or a formula of symbols.

    The formula is computed at all combinations of the bounds or listed sizes of its symbols.
    """
    if isinstance(dim, int):
        return dim, dim
    names = sorted(symbols_of(dim))
    ends = [sizes.listed.get(name, sizes.bounds[name]) for name in names]
    corners = [
        size_of(dim, dict(zip(names, corner, strict=True))) for corner in itertools.product(*ends)
    ]
    known = [size for size in corners if isinstance(size, int)]
    return min(known), max(known)


def problems_of(values: Sequence[ir.Value], sizes: Sizes, kind: str) -> list[SmeltError]:
    """Return the errors of inputs or outputs, as ``kind`` calls them in messages.

    They are a value that is no tensor (E201), a size that may be 0 (E407), and more enumerated
    shapes than Core ML allows (E633).
    """
    problems: list[SmeltError] = []
    for value in values:
        if isinstance(value.type, ir.SequenceType | ir.OptionalType):
            what = f"target 'coreml' cannot write the {kind} {value.name!r}"
            why = "it is a sequence or an optional value, and Core ML passes tensors only"
            fix = f"give the model one {kind} for each tensor"
            problems.append(Unsupported("E201", what, why=why, fix=fix))
            continue
        for dim in value.shape or ():
            names = symbols_of(dim)
            least = dim if isinstance(dim, int) else 1
            if names and names <= sizes.bounds.keys():
                least = _range(dim, sizes)[0]
            if least < 1:
                fix = f"--dim {min(names)}=1..N" if names else ""
                problems.append(empty_tensor("coreml", f"{kind} {value.name!r}", fix))
        symbols = set().union(*(symbols_of(dim) for dim in value.shape or ()))
        count = 1
        for name in symbols & sizes.listed.keys():
            count *= len(sizes.listed[name])
        if count > MOST_SHAPES and symbols <= sizes.listed.keys():
            why = f"Core ML allows at most {MOST_SHAPES}"
            what = f"{kind} {value.name!r} has {count} shapes"
            problems.append(UsageError("E633", what, why=why, fix="list fewer sizes"))
    return problems


def feature(name: str, value: ir.Value, array: MultiArray) -> Feature:
    """Return the description of an input or output, with its ONNX name if the package
    renames it, and its ONNX type if that is uint32.
    """
    told = [f"{value.name} of the ONNX model"] if name != value.name else []
    if value.dtype == ir.DataType.UINT32:
        told.append(f"uint32 as {SAME_BITS}")
    return Feature(name, array, "; ".join(told))
