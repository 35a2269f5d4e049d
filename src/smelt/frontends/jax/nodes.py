"""Methods by which lowerings add nodes to a graph: operators, constants, movement and sizes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.constants import ConstantPool
from smelt.frontends.jax.dims import reshape_numbers
from smelt.frontends.jax.element_types import NARROW, moved_as, refusal, supporting_opset
from smelt.frontends.jax.functions.library import Library
from smelt.frontends.jax.open_sizes.symbols import Symbols
from smelt.ir.build import Attribute, Builder


@dataclass(frozen=True)
class Shared:
    """The objects that all graphs of one model, or of one function, share.

    ``builder`` makes nodes of the outermost graph, which computes constants and sizes. ``numbers``
    makes the names of values in subgraphs unique.
    """

    builder: Builder
    symbols: Symbols
    pool: ConstantPool
    library: Library
    numbers: Iterator[int] = field(default_factory=lambda: count(1))


class Nodes(ABC):
    """Adds nodes to the graph of ``builder``."""

    def __init__(self, builder: Builder, shared: Shared) -> None:
        self.builder = builder
        self.shared = shared
        self.symbols = shared.symbols
        self.pool = shared.pool

    @abstractmethod
    def unsupported(self, why: str, fix: str = "") -> Unsupported:
        """Return the error for an equation that cannot be lowered here."""

    def fresh(self, stem: str) -> str:
        """Return a name that starts with ``stem`` and is unique in the model."""
        return f"{stem}_{next(self.shared.numbers)}"

    @property
    def opset(self) -> int:
        """The ONNX opset of the model."""
        return self.builder.model.opset_imports[""]

    # -- nodes -------------------------------------------------------------------------------

    def op(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        domain: str = "",
        **attributes: Attribute | None,
    ) -> ir.Value:
        """Return the output of a new node with one output and an inferred type.

        Attributes that are None are left out. Some operators only move elements but do not accept a
        narrow type; then the elements are cast to a wider type and back.
        """
        if not domain and refusal(op_type, inputs, self.opset):
            wide = moved_as(op_type, inputs, attributes)
            if wide is not None:
                return self._moved_as(op_type, inputs, wide, attributes)
        self._check_types(op_type, inputs, domain)
        return self.builder.op(op_type, *inputs, domain=domain, name=None, **attributes)

    def _moved_as(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        wider: ir.DataType,
        attributes: Mapping[str, Attribute | None],
    ) -> ir.Value:
        """Return the result of a movement operator, computed in ``wider`` and cast back."""
        stored = next(
            value.dtype for value in inputs if value is not None and value.dtype in NARROW
        )
        widened = [
            self.cast(value, wider) if value is not None and value.dtype == stored else value
            for value in inputs
        ]
        result = self.builder.op(op_type, *widened, domain="", name=None, **attributes)
        saturate = 0 if stored.name.startswith("FLOAT8") else None  # infinity stays
        return self.op("Cast", result, to=int(stored), saturate=saturate)

    def ops(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        outputs: int,
        **attributes: Attribute | None,
    ) -> tuple[ir.Value, ...]:
        """Return the outputs of a new node with several outputs."""
        self._check_types(op_type, inputs)
        return self.builder.ops(
            op_type, *inputs, outputs=outputs, domain="", name=None, **attributes
        )

    def _check_types(
        self, op_type: str, inputs: Sequence[ir.Value | None], domain: str = ""
    ) -> None:
        """Raise E102 if the operator does not accept the inputs' types at this opset."""
        why = "" if domain else refusal(op_type, inputs, self.opset)
        if why:
            later = supporting_opset(op_type, inputs, self.opset)
            fix = f"trace for opset {later}; or " if later else ""
            raise self.unsupported(why, f"{fix}compute in a wider type, and convert the result")

    def constant(self, array: np.ndarray | np.generic) -> ir.Value:
        """Return a constant; equal small constants are shared."""
        return self.pool.constant(np.asarray(array))

    def const_i64(self, numbers: Sequence[int] | int) -> ir.Value:
        """Return an int64 constant: rank 0 for an int, rank 1 for a sequence."""
        return self.constant(np.asarray(numbers, dtype=np.int64))

    def const_like(self, number: float | bool, like: ir.Value) -> ir.Value:
        """Return a rank-0 constant in the dtype of ``like``."""
        assert like.dtype is not None
        return self.constant(np.asarray(number, dtype=like.dtype.numpy()))

    def cast(self, x: ir.Value, dtype: np.dtype | ir.DataType) -> ir.Value:
        """Return ``x`` in another element type, converted as ONNX's Cast does."""
        to = dtype if isinstance(dtype, ir.DataType) else ir.DataType.from_numpy(np.dtype(dtype))
        return x if x.dtype == to else self.op("Cast", x, to=int(to))

    # -- movement ----------------------------------------------------------------------------

    def transpose(self, x: ir.Value, perm: Sequence[int]) -> ir.Value:
        """Return ``x`` with its dims in the order ``perm``."""
        order = [int(dim) for dim in perm]
        return x if order == list(range(len(order))) else self.op("Transpose", x, perm=order)

    def unsqueeze(self, x: ir.Value, axes: Sequence[int]) -> ir.Value:
        """Return ``x`` with dims of size 1 inserted at ``axes`` of the result."""
        return self.op("Unsqueeze", x, self.const_i64(list(axes))) if len(axes) else x

    def squeeze(self, x: ir.Value, axes: Sequence[int]) -> ir.Value:
        """Return ``x`` without the dims ``axes``, which have size 1."""
        return self.op("Squeeze", x, self.const_i64(list(axes))) if len(axes) else x

    def slice(
        self,
        x: ir.Value,
        starts: Sequence[Dim],
        ends: Sequence[Dim],
        axes: Sequence[int],
        steps: Sequence[int] | None = None,
    ) -> ir.Value:
        """Return ``x[starts:ends:steps]`` on ``axes``; sizes may be symbolic."""
        if not len(axes):
            return x
        bounds = [self.shape_value(starts), self.shape_value(ends), self.const_i64(list(axes))]
        if steps is not None and any(step != 1 for step in steps):
            bounds.append(self.const_i64(list(steps)))
        return self.op("Slice", x, *bounds)

    def reshape(self, x: ir.Value, shape: Sequence[Dim]) -> ir.Value:
        """Return ``x`` in ``shape``.

        The shape is a constant if -1 and 0 can stand for its symbolic dims; else it is computed.
        """
        target = [self.symbols.dim(dim) for dim in shape]
        numbers = None if 0 in target else reshape_numbers(x.shape, target)
        if numbers is not None:
            return self.op("Reshape", x, self.const_i64(numbers))
        # A literal 0 must mean size 0 here, not "as before".
        return self.op("Reshape", x, self.shape_value(shape), allowzero=int(0 in target) or None)

    def expand(self, x: ir.Value, shape: Sequence[Dim]) -> ir.Value:
        """Return ``x`` broadcast to ``shape`` by the rules of NumPy."""
        return self.op("Expand", x, self.shape_value(shape))

    def with_known_sizes(self, x: ir.Value, shape: Sequence[Dim]) -> ir.Value:
        """Return ``x``, with a Reshape to ``shape`` if shape inference misses a static size.

        Without the Reshape, later passes would know less than JAX about slices with computed
        starts.
        """
        dims = [self.symbols.dim(dim) for dim in shape]
        inferred = (
            x.shape if x.shape is not None and len(x.shape) == len(dims) else [None] * len(dims)
        )
        pairs = list(zip(inferred, dims, strict=True))
        if all(size == dim or not isinstance(dim, int) for size, dim in pairs) or 0 in dims:
            return x
        # A 0 keeps the dim of the input.
        numbers = [dim if isinstance(dim, int) else 0 for dim in dims]
        return self.op("Reshape", x, self.const_i64(numbers))

    # -- sizes -------------------------------------------------------------------------------

    def shape_value(self, dims: Sequence[Dim]) -> ir.Value:
        """Return ``dims`` as an int64 vector: a constant, or computed from the sizes of inputs."""
        if not any(is_symbolic(dim) for dim in dims):
            return self.const_i64([int(dim) for dim in dims])
        parts: list[ir.Value] = []
        numbers: list[int] = []
        for dim in dims:
            if not is_symbolic(dim):
                numbers.append(int(dim))
                continue
            if numbers:
                parts.append(self.const_i64(numbers))
                numbers = []
            parts.append(self.symbols.value(dim))
        if numbers:
            parts.append(self.const_i64(numbers))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def dim_scalar(self, dim: Dim, dtype: np.dtype | ir.DataType = ir.DataType.INT64) -> ir.Value:
        """Return one dim as a rank-0 value."""
        if not is_symbolic(dim):
            to = dtype.numpy() if isinstance(dtype, ir.DataType) else dtype
            return self.constant(np.asarray(int(dim), dtype=to))
        return self.cast(self.squeeze(self.symbols.value(dim), [0]), dtype)

    def known(self, value: ir.Value) -> np.ndarray | None:
        """Return the elements of a small constant; None for a value that only the run knows."""
        return self.pool.known.get(value)
