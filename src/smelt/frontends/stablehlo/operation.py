"""An MLIR operation, with attributes as Python numbers and text and types as NumPy dtypes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir

from smelt.errors import Unsupported
from smelt.frontends.stablehlo.source_lines import SourceLine, innermost_line

DTYPES: Mapping[str, np.dtype] = {
    name: np.dtype(dtype)
    for name, dtype in {
        "i1": np.bool_,
        "f16": np.float16,
        "f32": np.float32,
        "f64": np.float64,
        "bf16": ml_dtypes.bfloat16,
        "complex<f32>": np.complex64,
        "complex<f64>": np.complex128,
        "i2": ml_dtypes.int2,
        "i4": ml_dtypes.int4,
        "ui2": ml_dtypes.uint2,
        "ui4": ml_dtypes.uint4,
        "f4E2M1FN": ml_dtypes.float4_e2m1fn,
        "f8E3M4": ml_dtypes.float8_e3m4,
        "f8E4M3": ml_dtypes.float8_e4m3,
        "f8E4M3FN": ml_dtypes.float8_e4m3fn,
        "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
        "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
        "f8E5M2": ml_dtypes.float8_e5m2,
        "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
        "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
        **{f"{sign}i{n}": f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)},
    }.items()
}
"""Element types by their MLIR names."""

_ENUM = re.compile(r"#\w+<\w+ (\w+)>")  # an attribute such as #stablehlo<comparison_direction LT>
_NUMBERED = re.compile(r"_\d+$")
_NUMBER = re.compile(r"0x[0-9A-F]+|-?\d[\d.eE+-]*")


class Operation:
    """One operation of a module; ``call`` is the call of the function that contains it."""

    def __init__(self, view: Any, call: Operation | None = None) -> None:
        self.view = view.operation
        self.call = call
        self.name: str = self.view.name

    @cached_property
    def dtype(self) -> np.dtype:
        """The element type of the first result."""
        return dtype_of(self.view.results[0].type)

    @cached_property
    def element(self) -> str:
        """The element type of the first result, as MLIR names it."""
        return element_of(self.view.results[0].type)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the first result; sizes that are not static are negative."""
        return tuple(ir.RankedTensorType(self.view.results[0].type).shape)

    def has(self, name: str) -> bool:
        """True if the operation has an attribute ``name``."""
        return name in self.view.attributes

    def integer(self, name: str, default: int = 0) -> int:
        """Return an integer or boolean attribute as int."""
        return int(self.view.attributes[name].value) if self.has(name) else default

    def integers(self, name: str, default: Any = ()) -> tuple[int, ...]:
        """Return an attribute that is a list of integers."""
        if not self.has(name):
            return tuple(default)
        return tuple(int(item) for item in self.view.attributes[name])

    def table(self, name: str) -> list[tuple[int, ...]]:
        """Return an attribute that is a matrix of integers; empty if it is absent."""
        if not self.has(name):
            return []
        return [tuple(map(int, row)) for row in np.array(self.view.attributes[name])]

    def word(self, name: str, default: str = "") -> str:
        """Return an attribute that is text, a function name or an enum value."""
        if not self.has(name):
            return default
        attribute = self.view.attributes[name]
        if hasattr(attribute, "value"):
            return str(attribute.value)
        enum = _ENUM.fullmatch(str(attribute))
        return enum.group(1) if enum else str(attribute)

    def callee(self) -> str:
        """Return the name of the called function, without the number that MLIR appends."""
        return _NUMBERED.sub("", self.word("callee"))

    def entry(self, dictionary: str, name: str, default: int = 0) -> int:
        """Return the integer ``name`` of the attribute ``dictionary``."""
        if not self.has(dictionary) or name not in self.view.attributes[dictionary]:
            return default
        return int(self.view.attributes[dictionary][name].value)

    def place(self) -> SourceLine | None:
        """Return the operation's source line, or that of the call of its function."""
        line = innermost_line(str(self.view.location))
        return self.call.place() if line is None and self.call is not None else line

    def unsupported(
        self,
        why: str,
        code: str = "E102",
        fix: str = "give smelt the JAX function instead of its export",
    ) -> Unsupported:
        """Return the error for this operation, with its source line."""
        at = str(self.place() or "")
        what = "has no lowering" if code == "E101" else "is not supported in this use"
        return Unsupported(
            code,
            f"operator {self.name!r} of StableHLO {what}",
            at=at,
            why=why,
            fix=fix,
        )


def element_of(kind: Any) -> str:
    """Return MLIR's name of the element type of a tensor type."""
    return str(ir.ShapedType(kind).element_type)


def dtype_of(kind: Any) -> np.dtype:
    """Return the element type of an MLIR tensor type; raises Unsupported E105."""
    element = element_of(kind)
    if element not in DTYPES:
        raise Unsupported(
            "E105",
            f"an exported function computes with {element!r}",
            why="ONNX has no such element type, or no operators for it",
            fix="convert to a type that ONNX has, and export the function again",
        )
    return DTYPES[element]


def array_of(op: Operation) -> np.ndarray:
    """Return the array of a constant, without a copy where MLIR exposes its memory."""
    dtype, shape = op.dtype, op.shape
    if dtype.isbuiltin == 1 and dtype.kind != "c":
        array = np.asarray(op.view.attributes["value"])
        return array if array.dtype == dtype else array.astype(dtype)
    # MLIR for Python cannot read these types as numbers, so parse their text.
    text = op.view.get_asm().partition("dense<")[2].rpartition("> : ")[0]
    if text.startswith('"0x'):  # many elements, as their bytes
        return np.frombuffer(bytes.fromhex(text.strip('"')[2:]), dtype).reshape(shape)
    # MLIR prints a complex number as two floats, and a splat constant as one number.
    printed = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    values = [_number(item, printed) for item in _NUMBER.findall(text)]
    numbers = np.array(values, printed).view(dtype)
    return np.broadcast_to(numbers.reshape(shape if numbers.size != 1 else ()), shape)


def _number(text: str, dtype: np.dtype) -> Any:
    """Return the number that MLIR prints as ``text``; infinities and NaN are printed as bits."""
    if not text.startswith("0x"):
        return dtype.type(float(text))
    return np.array(int(text, 16), f"u{dtype.itemsize}").view(dtype)[()]
