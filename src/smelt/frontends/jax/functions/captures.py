"""What the body of a function reads from outside, turned into inputs of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import jax
import numpy as np
import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.compat import Aval
from smelt.frontends.jax.constants import INTERNED, ConstantPool
from smelt.frontends.jax.symbols import Symbols
from smelt.ir.build import Builder


class Inputs:
    """The inputs of one function, each with what its caller passes for it."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.given: dict[ir.Value, Callable[[], ir.Value]] = {}

    def new(
        self, stem: str, dtype: ir.DataType, shape: ir.Shape, give: Callable[[], ir.Value]
    ) -> ir.Value:
        """An input called ``stem``, for which a call passes what ``give`` returns."""
        value = self._builder.input(stem, dtype, shape)
        self.given[value] = give
        return value


def is_structure(array: np.ndarray) -> bool:
    """True for small arrays of integers: lowerings read indices and the like, weights are others.

    They are written into the body, since ONNX functions have no constants beyond that.
    """
    wide = array.dtype.kind in "iu" and array.dtype.itemsize >= 4
    return (wide or array.dtype.kind == "b") and array.nbytes <= INTERNED


class Captures(ConstantPool):
    """The constants of one function: arrays that it captures are inputs, others ``Constant``s."""

    def __init__(
        self, builder: Builder, inputs: Inputs, caller: ConstantPool, symbols: Symbols
    ) -> None:
        super().__init__(builder, caller.names)
        self._inputs = inputs
        self._caller = caller
        self._symbols = symbols

    def captured(self, constant: object, aval: Aval) -> ir.Value:
        """A literal as a ``Constant``, a captured array as an input."""
        literal = not isinstance(constant, jax.Array) and np.ndim(constant) == 0  # type: ignore[arg-type]
        if literal or is_structure(compat.host_array(constant)):
            return super().captured(constant, aval)
        key = compat.identity(constant), aval.dtype
        if key not in self._by_identity:
            value = self._inputs.new(
                stem(self.names.get(key[0], "")),
                ir.DataType.from_numpy(np.dtype(aval.dtype)),
                self._symbols.shape(aval.shape),
                lambda: self._caller.captured(constant, aval),
            )
            self._by_identity[key] = constant, value
        return self._by_identity[key][1]


_NAMELESS = re.compile(r"((const|captured)(_\d+)?)?")
_INSTANCE = re.compile(r".*?\d+_(?=[A-Za-z])")


def stem(name: str) -> str:
    """What an array is called in all instances: ``kernel`` for ``blocks_3_kernel``."""
    return "captured" if _NAMELESS.fullmatch(name) else _INSTANCE.sub("", name, count=1)


class Sizes(Symbols):
    """The symbolic dims of one function: read off its inputs, or passed by the caller."""

    def __init__(self, builder: Builder, inputs: Inputs, caller: Symbols) -> None:
        super().__init__(builder)
        self._inputs = inputs
        self._caller = caller

    def _solve(self, name: str) -> ir.Value:
        try:
            return super()._solve(name)
        except Unsupported:
            give = partial(self._caller.symbol, name)
            return self._inputs.new(f"size_{name}", ir.DataType.INT64, ir.Shape([1]), give)
