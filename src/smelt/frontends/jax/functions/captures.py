"""Turn values that a function body captures into inputs of the function."""

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
from smelt.frontends.jax.open_sizes.symbols import Symbols
from smelt.ir.build import Builder


class Inputs:
    """The inputs of one function.

    ``makers`` has a Python function for each input, which returns the value that a call passes.
    """

    def __init__(self, builder: Builder) -> None:
        """Begin without inputs."""
        self._builder = builder
        self.makers: dict[ir.Value, Callable[[], ir.Value]] = {}

    def new(
        self, stem: str, dtype: ir.DataType, shape: ir.Shape, maker: Callable[[], ir.Value]
    ) -> ir.Value:
        """Return a new input called ``stem``; calls pass the result of ``maker()`` for it."""
        value = self._builder.input(stem, dtype, shape)
        self.makers[value] = maker
        return value


def is_structure(array: np.ndarray) -> bool:
    """True for small integer or bool arrays such as indices, whose elements lowerings may read.

    The body holds them as ``Constant`` nodes. Larger arrays and float arrays count as weights.
    """
    wide = array.dtype.kind in "iu" and array.dtype.itemsize >= 4
    return (wide or array.dtype.kind == "b") and array.nbytes <= INTERNED


class Captures(ConstantPool):
    """The constants of one function: captured arrays become inputs, literals ``Constant`` nodes."""

    def __init__(
        self, builder: Builder, inputs: Inputs, caller: ConstantPool, symbols: Symbols
    ) -> None:
        """Begin without constants; those of the ``caller`` become ``inputs`` of the function."""
        super().__init__(builder, caller.names)
        self._inputs = inputs
        self._caller = caller
        self._symbols = symbols

    def captured(self, constant: object, aval: Aval) -> ir.Value:
        """Return a literal as a ``Constant``, or a captured array as an input."""
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
    """Return the name of an array without its instance: ``kernel`` for ``blocks_3_kernel``.

    So calls for several instances of a block share one function.
    """
    return "captured" if _NAMELESS.fullmatch(name) else _INSTANCE.sub("", name, count=1)


class Sizes(Symbols):
    """The symbolic dims of one function: computed from its inputs, or passed by the caller."""

    def __init__(self, builder: Builder, inputs: Inputs, caller: Symbols) -> None:
        """Begin without sizes; the ``caller`` passes those that ``inputs`` do not determine."""
        super().__init__(builder)
        self._inputs = inputs
        self._caller = caller

    def _solve(self, name: str) -> ir.Value:
        """Return the value of a symbol, a new input if other inputs do not determine it."""
        try:
            return super()._solve(name)
        except Unsupported:
            maker = partial(self._caller.symbol, name)
            return self._inputs.new(f"size_{name}", ir.DataType.INT64, ir.Shape([1]), maker)
