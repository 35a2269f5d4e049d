"""The inputs and outputs of a model: names, element types, shapes and defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.complex_pairs import complex_type_of
from smelt.ir.defaults import default_of
from smelt.ir.opaque_types import opaque_type_of
from smelt.ir.symbolic_dims.dims import Place, size_of, symbols_of, unnamed_dims
from smelt.ir.symbolic_dims.size_constraints import SizeCheck, check_of

Dim = int | ir.SymbolicDim
Value = np.ndarray | list[np.ndarray] | dict[Any, Any] | None
"""The value of a port: a tensor, a sequence of tensors, a map, or None for an absent optional."""


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output.

    ``kind`` is ``tensor``, ``sequence`` or ``optional`` as in ONNX (``dtype`` is the element type),
    or a type with maps, such as ``sequence(map(int64,float))``. ``shape`` is None if the rank is
    unknown. ``default`` is the initializer of an input that callers may omit. ``unnamed`` are the
    generated names of unnamed dims (``ir/symbolic_dims/dims.py``). ``complex`` is the complex
    element type of a tensor whose last dim holds real and imaginary parts
    (``ir/complex_pairs.py``).
    """

    name: str
    dtype: ir.DataType | None
    shape: tuple[Dim, ...] | None
    kind: str = "tensor"
    default: ir.TensorProtocol | None = None
    unnamed: frozenset[str] = frozenset()
    complex: ir.DataType | None = None

    @property
    def is_opaque(self) -> bool:
        """True for maps and sequences of maps, of which only ``kind`` is known."""
        return "map(" in self.kind

    def __str__(self) -> str:
        """Return the type as text: ``float[B,3]``, or with its complex type if it has one."""
        if self.is_opaque:
            return self.kind
        dims = "?" if self.shape is None else ",".join(map(_show, self.shape))
        dtype = self.dtype.name.lower() if self.dtype is not None else "?"
        text = f"{dtype}[{dims}]"
        if self.complex is not None and self.shape is not None:
            complex_dims = ",".join(map(_show, self.shape[:-1]))
            return f"{text} ({self.complex.name.lower()}[{complex_dims}])"
        return text if self.kind == "tensor" else f"{self.kind}({text})"


@dataclass(frozen=True, slots=True)
class Interface:
    """The inputs and outputs of a model, in order.

    ``check`` raises for input sizes that the model does not accept; None if it accepts all.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    check: SizeCheck | None = field(default=None, repr=False, compare=False)

    def symbols(self) -> tuple[str, ...]:
        """Return the names of the inputs' symbolic dims, each once, in order of appearance."""
        names: dict[str, None] = {}
        for port in self.inputs:
            for dim in port.shape or ():
                if isinstance(dim, ir.SymbolicDim):
                    names.update(dict.fromkeys(sorted(symbols_of(dim))))
        return tuple(names)


def _show(dim: Dim) -> str:
    """Return a dim as text."""
    return "?" if isinstance(dim, ir.SymbolicDim) and dim.value is None else str(dim)


def interface_of(model: ir.Model) -> Interface:
    """Return the interface of ``model``; overridable initializers are inputs with a default."""
    unnamed = unnamed_dims(model.graph.inputs)
    return Interface(
        tuple(_port(value, default_of(value), unnamed) for value in model.graph.inputs),
        tuple(_port(value, default=None, unnamed={}) for value in model.graph.outputs),
        check_of(model),
    )


def _port(value: ir.Value, default: ir.TensorProtocol | None, unnamed: Mapping[Place, str]) -> Port:
    """Return the Port of ``value``; ``unnamed`` has the generated names of its unnamed dims."""
    kind, dtype = "tensor", None
    kinds: Iterable[tuple[type, str]] = (
        (ir.OptionalType, "optional"),
        (ir.SequenceType, "sequence"),
        (ir.SparseTensorType, "sparse"),
    )
    for type_class, word in () if type(value.type) is ir.TensorType else kinds:
        if isinstance(value.type, type_class):
            kind = word
            break
    opaque = opaque_type_of(value)
    if opaque is not None:
        kind = opaque.text
    if value.type is not None:
        dtype = value.type.dtype
    if value.shape is None:
        return Port(value.name or "", dtype, shape=None, kind=kind, default=default)
    names = [unnamed.get((value, axis)) for axis in range(len(value.shape))]
    pairs = zip(value.shape.dims, names, strict=True)
    shape = tuple(dim if name is None else ir.SymbolicDim(name) for dim, name in pairs)
    unknown = frozenset(filter(None, names))
    return Port(value.name or "", dtype, shape, kind, default, unknown, complex_type_of(value))


def instantiate(port: Port, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of ``port`` with its symbols bound by ``sizes``.

    An unnamed dim is 1 unless ``sizes`` has its generated name; an unknown rank is rank 0. Raises
    KeyError if a symbol has no size, ValueError if an expression is negative or not a whole number.
    """
    shape: list[int] = []
    for dim in port.shape or ():
        if isinstance(dim, int):
            shape.append(dim)
        elif dim.value is None or (dim.value in port.unnamed and dim.value not in sizes):
            shape.append(1)
        else:
            shape.append(_evaluate(dim, sizes))
    return tuple(shape)


def _evaluate(dim: ir.SymbolicDim, sizes: Mapping[str, int]) -> int:
    """Return the size of ``dim``; raises as ``instantiate`` does."""
    name = dim.value or ""
    if name in sizes:
        return sizes[name]
    missing = sorted(symbols_of(dim) - sizes.keys())
    if missing:
        raise KeyError(missing[0])
    size = size_of(dim, sizes)
    if not isinstance(size, int) or size < 0:
        raise ValueError(f"{dim} is not a size for {dict(sizes)}")
    return size
