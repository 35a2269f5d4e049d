"""``smelt.DotGeneral``: the contraction of XLA, over a semiring.

Each pair ``lhs_contracting[i]``, ``rhs_contracting[i]`` is multiplied and summed, each pair
``lhs_batch[i]``, ``rhs_batch[i]`` is a batch dim; the result has the dims ``[batch..., lhs free...,
rhs free...]``. The semiring defines multiply and sum.

With ``pairs``, operands and result have an additional last dim with the real and the imaginary part
of complex numbers, and ``lhs_conj`` and ``rhs_conj`` conjugate an operand. All other attributes
count dims without it.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators import complex_dot
from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Operator, Result
from smelt.operators.inputs import present
from smelt.operators.semiring import Semiring, semiring_of, semiring_on

WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64)
"""Element types that every runtime contracts; narrower ones are widened first."""


@dataclass(frozen=True)
class Groups:
    """The dims of both operands by role: contracting, batch, free."""

    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_free: tuple[int, ...]
    rhs_free: tuple[int, ...]


def groups(attributes: Attributes, lhs_rank: int, rhs_rank: int) -> Groups:
    """Return the dims named by ``attributes``; raises ValueError if they are invalid."""
    names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
    lhs_contracting, rhs_contracting, lhs_batch, rhs_batch = (
        _dims(attributes, name) for name in names
    )
    if len(lhs_contracting) != len(rhs_contracting) or len(lhs_batch) != len(rhs_batch):
        raise ValueError("both operands need equally many contracting and batch dims")
    for side, used, rank in (
        ("lhs", (*lhs_contracting, *lhs_batch), lhs_rank),
        ("rhs", (*rhs_contracting, *rhs_batch), rhs_rank),
    ):
        if any(not 0 <= dim < rank for dim in used):
            raise ValueError(f"dims {list(used)} of {side} do not fit rank {rank}")
        if len(set(used)) < len(used):
            raise ValueError(f"a dim of {side} is named twice in {list(used)}")
    lhs_free = tuple(dim for dim in range(lhs_rank) if dim not in (*lhs_contracting, *lhs_batch))
    rhs_free = tuple(dim for dim in range(rhs_rank) if dim not in (*rhs_contracting, *rhs_batch))
    return Groups(lhs_contracting, rhs_contracting, lhs_batch, rhs_batch, lhs_free, rhs_free)


def _dims(attributes: Attributes, name: str) -> tuple[int, ...]:
    """Return the dims of attribute ``name``."""
    value = attributes.get(name)
    return tuple(int(dim) for dim in value) if isinstance(value, tuple) else ()


def accumulator(inputs: Sequence[ir.DataType], output: ir.DataType) -> ir.DataType:
    """Return the element type to multiply and sum in: never narrower than the output or 32 bits."""
    if not output.is_floating_point():
        return output
    widest = max((*inputs, output), key=lambda t: t.bitwidth if t.is_floating_point() else 0)
    return widest if widest.bitwidth >= 32 else ir.DataType.FLOAT


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return ``[batch..., lhs free..., rhs free...]`` in ``dtype``, by default the operands'
    dtype."""
    lhs, rhs = inputs
    if lhs is None or rhs is None:
        raise ValueError("DotGeneral takes two operands")
    complex_dot.check((lhs, rhs), attributes)
    preferred = attributes["dtype"]
    dtype = ir.DataType(preferred) if isinstance(preferred, int) else lhs.dtype
    semiring_on(attributes["semiring"], None if dtype is None else dtype.numpy())
    if preferred is None and None not in (lhs.dtype, rhs.dtype) and lhs.dtype != rhs.dtype:
        raise ValueError(
            f"element types {lhs.dtype} and {rhs.dtype} differ, and dtype is not given"
        )
    if lhs.shape is None or rhs.shape is None:
        return (Result(dtype, None),)
    numbers = slice(-1 if attributes["pairs"] else None)
    left, right = lhs.shape.dims[numbers], rhs.shape.dims[numbers]
    parts = groups(attributes, len(left), len(right))
    pairs = [*zip(parts.lhs_contracting, parts.rhs_contracting, strict=True)]
    pairs += zip(parts.lhs_batch, parts.rhs_batch, strict=True)
    for i, j in pairs:
        if isinstance(left[i], int) and isinstance(right[j], int) and left[i] != right[j]:
            raise ValueError(f"size {left[i]} of lhs dim {i} is not size {right[j]} of rhs dim {j}")
    batch = [
        _better_known(left[i], right[j])
        for i, j in zip(parts.lhs_batch, parts.rhs_batch, strict=True)
    ]
    free = [left[i] for i in parts.lhs_free] + [right[j] for j in parts.rhs_free]
    return (Result(dtype, ir.Shape([*batch, *free, *([2] if attributes["pairs"] else [])])),)


def _better_known(a: Dim, b: Dim) -> Dim:
    """Return the one of two equal dims that is a number, if one is."""
    return a if isinstance(a, int) or not isinstance(b, int) else b


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the dims aligned by broadcasting, combined and reduced in the accumulator type.

    Both operands get the dims batch, lhs free, rhs free, contracting, of size 1 where they lack
    one. ``batch``, ``lhs_free`` and ``rhs_free`` are numbers of dims.
    """
    lhs, rhs = present(inputs)
    if attributes.get("pairs"):
        return _complex_reference(inputs, attributes)
    semiring = semiring_of(attributes["semiring"])
    parts = groups(attributes, lhs.ndim, rhs.ndim)
    preferred = attributes["dtype"]
    dtypes = [ir.DataType.from_numpy(array.dtype) for array in (lhs, rhs)]
    output = ir.DataType(preferred) if isinstance(preferred, int) else dtypes[0]
    wide = accumulator(dtypes, output).numpy()
    batch, lhs_free, rhs_free = len(parts.lhs_batch), len(parts.lhs_free), len(parts.rhs_free)
    left = lhs.astype(wide).transpose(*parts.lhs_batch, *parts.lhs_free, *parts.lhs_contracting)
    right = rhs.astype(wide).transpose(*parts.rhs_batch, *parts.rhs_free, *parts.rhs_contracting)
    left = np.expand_dims(left, tuple(range(batch + lhs_free, batch + lhs_free + rhs_free)))
    right = np.expand_dims(right, tuple(range(batch, batch + lhs_free)))
    terms = semiring.combine(left, right)
    total = semiring.sum(terms, tuple(range(batch + lhs_free + rhs_free, terms.ndim)))
    return (np.asarray(total).astype(output.numpy()),)


def _complex_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the product of pairs, computed with complex numbers of the operands' widest type."""
    preferred = attributes["dtype"]
    arrays = complex_dot.complex_arrays(inputs, attributes)
    output = np.result_type(*arrays) if preferred is None else np.dtype(np.complex128)
    arrays = [array.astype(output) for array in arrays]
    (result,) = reference(arrays, {**attributes, **complex_dot.REAL, "dtype": None})
    parts = np.stack([result.real, result.imag], axis=-1)
    return (parts.astype(ir.DataType(preferred).numpy()) if isinstance(preferred, int) else parts,)


def body(
    b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[ir.Value, ...] | None:
    """Build an Einsum for sum_product, with matrices for complex numbers; else a broadcasting
    product and a reduction."""
    lhs, rhs = inputs
    if lhs is None or rhs is None or lhs.shape is None or rhs.shape is None:
        return None
    if lhs.dtype is None or rhs.dtype is None or len(lhs.shape) + len(rhs.shape) > 52:
        return None
    if attributes["pairs"]:
        matrices, real_attributes = complex_dot.real_product(b, lhs, rhs, attributes)
        return body(b, (lhs, matrices), real_attributes)
    preferred = attributes["dtype"]
    output = ir.DataType(preferred) if isinstance(preferred, int) else lhs.dtype
    semiring = semiring_of(attributes["semiring"])
    sum_type = _body_type(accumulator((lhs.dtype, rhs.dtype), output))
    if semiring.is_of_booleans:
        sum_type = ir.DataType.BOOL
    parts = groups(attributes, len(lhs.shape), len(rhs.shape))
    left, right = b.cast(lhs, sum_type), b.cast(rhs, sum_type)
    if attributes["semiring"] == "sum_product":
        equation = _equation(parts, len(lhs.shape), len(rhs.shape))
        result = b.op("Einsum", left, right, equation=equation)
    else:
        result = _reduction(b, left, right, parts, semiring)
    return (b.cast(result, output),)


def _body_type(dtype: ir.DataType) -> ir.DataType:
    """Return an element type that every runtime contracts and that gives the same result."""
    if dtype in WIDE or dtype.is_floating_point():
        return dtype
    # Integers wrap around, so a wider type and a Cast back give the same bits.
    return ir.DataType.INT32 if dtype.bitwidth < 32 else ir.DataType.INT64


def _equation(parts: Groups, lhs_rank: int, rhs_rank: int) -> str:
    """Return the Einsum equation of a DotGeneral: equal letters for paired dims."""
    left = list(string.ascii_letters[:lhs_rank])
    right = list(string.ascii_letters[lhs_rank : lhs_rank + rhs_rank])
    for i, j in zip(parts.lhs_contracting, parts.rhs_contracting, strict=True):
        right[j] = left[i]
    for i, j in zip(parts.lhs_batch, parts.rhs_batch, strict=True):
        right[j] = left[i]
    out = [left[i] for i in (*parts.lhs_batch, *parts.lhs_free)]
    out += [right[j] for j in parts.rhs_free]
    return f"{''.join(left)},{''.join(right)}->{''.join(out)}"


def _reduction(
    b: Builder, lhs: ir.Value, rhs: ir.Value, parts: Groups, semiring: Semiring
) -> ir.Value:
    """Build a broadcasting product and its reduction over ``semiring``, as ``reference`` does."""
    batch, lhs_free, rhs_free = len(parts.lhs_batch), len(parts.lhs_free), len(parts.rhs_free)
    left = _transposed_by(b, lhs, (*parts.lhs_batch, *parts.lhs_free, *parts.lhs_contracting))
    right = _transposed_by(b, rhs, (*parts.rhs_batch, *parts.rhs_free, *parts.rhs_contracting))
    if rhs_free:
        left = b.op(
            "Unsqueeze", left, b.const_i64(range(batch + lhs_free, batch + lhs_free + rhs_free))
        )
    if lhs_free:
        right = b.op("Unsqueeze", right, b.const_i64(range(batch, batch + lhs_free)))
    terms = b.op(semiring.times, left, right)
    count = len(parts.lhs_contracting)
    return reduced(
        b, terms, range(batch + lhs_free + rhs_free, batch + lhs_free + rhs_free + count), semiring
    )


def reduced(b: Builder, terms: ir.Value, axes: Iterable[int], semiring: Semiring) -> ir.Value:
    """Build the sum of ``terms`` along ``axes`` over ``semiring``, without these axes.

    ONNX's reductions of no elements differ from the zero of some semirings: where an axis may be
    empty, a constant or the operator ``semiring.bound`` gives the zero.
    """
    along, shape = tuple(axes), terms.shape
    if not along or terms.dtype is None:
        return terms
    if shape is not None and 0 in (shape[axis] for axis in along):
        dims = [dim for axis, dim in enumerate(shape.dims) if axis not in along]
        if all(isinstance(dim, int) for dim in dims):
            zero = b.constant(semiring.zero_in(terms.dtype.numpy()))
            return b.op("Expand", zero, b.const_i64([int(str(dim)) for dim in dims]))
    total = b.op(semiring.reduction, terms, b.const_i64(along), keepdims=0)
    if semiring.bound is None or (shape is not None and not may_be_empty(shape, along)):
        return total
    return b.op(semiring.bound, total, b.constant(semiring.zero_in(terms.dtype.numpy())))


def may_be_empty(shape: Iterable[Dim], axes: Iterable[int]) -> bool:
    """True if a dim among ``axes`` may be 0."""
    sizes = tuple(shape)
    return any(not isinstance(sizes[axis], int) or sizes[axis] == 0 for axis in axes)


def _transposed_by(b: Builder, value: ir.Value, perm: tuple[int, ...]) -> ir.Value:
    """Build a Transpose of ``value``, unless ``perm`` keeps the order."""
    return value if perm == tuple(range(len(perm))) else b.op("Transpose", value, perm=perm)


OPERATOR = Operator(
    domain="smelt",
    name="DotGeneral",
    summary="Contraction over paired dims, with batch dims, over a semiring",
    inputs=("lhs", "rhs"),
    outputs=("output",),
    attributes=(
        Attribute("lhs_contracting", ir.AttributeType.INTS, ()),
        Attribute("rhs_contracting", ir.AttributeType.INTS, ()),
        Attribute("lhs_batch", ir.AttributeType.INTS, ()),
        Attribute("rhs_batch", ir.AttributeType.INTS, ()),
        Attribute("dtype", ir.AttributeType.INT),
        Attribute("semiring", ir.AttributeType.STRING, "sum_product"),
        Attribute("pairs", ir.AttributeType.INT, 0),
        Attribute("lhs_conj", ir.AttributeType.INT, 0),
        Attribute("rhs_conj", ir.AttributeType.INT, 0),
    ),
    infer=infer,
    reference=reference,
    body=body,
)
