"""Declares operators that compute a formula for each element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Attributes, Operator, Result
from smelt.operators.elementwise import Formula, Row
from smelt.operators.formula.arrays import Arrays
from smelt.operators.formula.nodes import Nodes
from smelt.operators.inputs import present
from smelt.operators.numeric import SINGLE_TOLERANCE

FLOATS = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)


@dataclass(frozen=True, kw_only=True)
class Elementwise(Operator):
    """An operator that computes ``formula`` in double precision for each element."""

    row: Row

    @property
    def formula(self) -> Formula:
        """Return the formula that computes one element."""
        assert self.row.formula is not None
        return self.row.formula

    @property
    def defining(self) -> Callable[..., object]:
        """Return the formula, which identifies the declaration among others of its name."""
        return self.formula


def elementwise(
    name: str,
    formula: Formula,
    summary: str,
    inputs: tuple[str, ...] = ("x",),
    domain: str = "smelt",
    **facts: Any,
) -> Elementwise:
    """Return the operator ``domain.name`` that computes ``formula`` in double precision.

    Its inputs are broadcast as in NumPy before the formula is applied; its result has their dtype.
    ``facts`` are further columns of its ``Row``: the JAX ``primitive`` that it is, or an ``array``
    function or C expression of ``floats`` that computes the same faster, in the dtype itself.
    """

    def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
        """Return the dtype of the operands and the shape to which they broadcast."""
        dtype, shape = _types(name, inputs)
        return (Result(dtype, shape),)

    def reference(
        inputs: Sequence[np.ndarray | None], attributes: Attributes
    ) -> tuple[np.ndarray, ...]:
        """Return the formula on arrays in double precision."""
        arrays = [np.asarray(array) for array in inputs]
        wide = np.broadcast_arrays(*(array.astype(np.float64) for array in arrays))
        with np.errstate(all="ignore"):
            result = formula(Arrays(), *wide)
            return (np.asarray(result).astype(arrays[0].dtype),)

    def body(
        b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
    ) -> tuple[ir.Value, ...]:
        """Build the formula on the broadcast operands as doubles."""
        values = present(inputs)
        narrow = values[0].dtype
        assert narrow is not None
        wide = [b.cast(value, ir.DataType.DOUBLE) for value in _broadcast(b, values)]
        m = Nodes(b, tolerance=0.0 if narrow == ir.DataType.DOUBLE else SINGLE_TOLERANCE)
        result = formula(m, *map(m.tensor, wide))
        return (b.cast(result.value, narrow),)

    return Elementwise(
        domain=domain,
        name=name,
        summary=summary,
        inputs=inputs,
        outputs=("y",),
        infer=infer,
        reference=reference,
        body=body,
        any_rank=True,
        row=Row(name, domain=domain, operands=len(inputs), formula=formula, **facts),
    )


def _broadcast(b: Builder, values: Sequence[ir.Value]) -> list[ir.Value]:
    """Build each value expanded by the shapes of all others, so that all have one shape.

    The shapes are read at run time, because only then may be known which dims are 1.
    """
    if len(values) == 1:
        return list(values)
    sizes = [b.op("Shape", value) for value in values]
    result = []
    for i, value in enumerate(values):
        expanded = value
        for size in sizes[:i] + sizes[i + 1 :]:
            expanded = b.op("Expand", expanded, size)
        result.append(expanded)
    return result


def _types(
    name: str, inputs: Sequence[ir.Value | None]
) -> tuple[ir.DataType | None, ir.Shape | None]:
    """Return the dtype and shape of the result; raises ValueError for invalid operands."""
    values = present(inputs)
    if not values:
        raise ValueError(f"{name} takes {len(inputs)} operands")
    dtypes = {value.dtype for value in values if value.dtype is not None}
    for dtype in dtypes:
        if dtype not in FLOATS:
            raise ValueError(f"{name} takes floats, not {dtype.name.lower()}")
    if len(dtypes) > 1:
        raise ValueError(f"{name} takes operands of one element type")
    shapes = [value.shape for value in values]
    known_dims = [shape.dims for shape in shapes if shape is not None]
    common_dtype = next(iter(dtypes), None)
    if len(known_dims) < len(shapes):
        return common_dtype, None
    dims = zip_longest(*(shape[::-1] for shape in known_dims), fillvalue=1)
    return common_dtype, ir.Shape([_broadcast_dim(name, group) for group in dims][::-1])


def _broadcast_dim(name: str, group: Sequence[Dim]) -> Dim:
    """Return the dim to which the dims ``group`` broadcast.

    Two different symbols give an unknown dim. Raises ValueError for different sizes above 1.
    """
    sizes = {dim for dim in group if isinstance(dim, int) and dim != 1}
    if len(sizes) > 1:
        raise ValueError(f"sizes {sorted(sizes)} of {name} do not broadcast")
    if sizes:
        return sizes.pop()
    symbols = [dim for dim in group if not isinstance(dim, int)]
    if not symbols:
        return 1
    first = symbols[0]
    are_equal = all(dim == first for dim in symbols) and first.value is not None
    return first if are_equal or len(symbols) == 1 else ir.SymbolicDim(None)
