"""Drop a Gather whose indices are 0, 1, 2, ..., and operands that are the same everywhere.

    before   GatherND(mask: B,S, pairs (b, s) counted by Range and Expand: B,1,1,S,2) ─> y
    after    Unsqueeze(mask, axes = [1, 2]) ─> y

    before   Gather(Flatten(mask: B,S), b * S + s: B,1,1,S) ─> y
    after    Reshape(mask) ─> y

    before   And(GreaterOrEqual(Range(0, S, 1), 0): S,1, m: B,1,1,S) ─> y: B,1,S,S
    after    Expand(m) ─> y

    before   Add(x: B,S,D, Gather(table, zeros: B,S)) ─> y
    after    Add(x, row 0 of the table) ─> y

PyTorch writes masks as functions of positions, and embeddings of positions and types, in this way.
The values of the indices are proved from their computation
(``ir/value_facts/affine_proof.py``), also for symbolic sizes.

Needs    (1) in the first form, indices that count from 0 in steps of 1 along one axis each, in the
         order of axes; in the second form, indices that count all rows in row-major order: for
         constant sizes B and S, or if S in b * S + s is read from the shape of the mask; (2) in the
         third form, an operand that is one integer or boolean everywhere, and dims of the result
         that other operands have or inputs determine; (3) in the fourth form, a constant table, and
         other operands with all dims of the result.
Keeps    (1) indices that count from the end. An index out of bounds no longer causes an error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import may_be_constant
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.ir.value_facts.affine import Affine
from smelt.ir.value_facts.affine_proof import AffineProof
from smelt.ir.walk import producer_of
from smelt.operators.elementwise import BROADCASTING
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.size_from_inputs import shape_from_inputs, size_from_inputs
from smelt.passes.tensors.counts_rows import counts_rows

_ALL = tuple(sorted(BROADCASTING))


@rule(op("GatherND", var("data"), var("indices")))
def gather_nd_of_positions(m: Match, b: Builder) -> Replacement:
    """Replace a GatherND whose index tuples count along axes by an Unsqueeze of the data."""
    data, indices = m["data"], m["indices"]
    if m.root.attributes.get_int("batch_dims", 0) or data.shape is None or indices.shape is None:
        return None
    parts = AffineProof(m.constants).parts(indices)
    axes = [_counted_axis(part) for part in parts] if parts is not None else [None]
    counted_axes = [axis for axis in axes if axis is not None]
    if len(counted_axes) < len(axes) or sorted(set(counted_axes)) != counted_axes:  # needs 1
        return Miss("the indices are not proved to be 0, 1, 2, ... along axes in order")
    dims = indices.shape.dims[:-1]
    added = [axis for axis in range(len(dims)) if axis not in counted_axes]
    if any(dims[axis] != 1 for axis in added):
        return Miss("the indices are equal along an axis whose size is not 1")
    shortened = [
        axis
        for axis, counted in enumerate(counted_axes)
        if not same_dim(data.shape[axis], dims[counted])
    ]
    if not shortened:
        return b.op("Unsqueeze", data, b.const_i64(added)) if added else data
    shape = shape_from_inputs([*dims, *data.shape.dims[len(counted_axes) :]], b.graph, b)
    if shape is None:
        return Miss("no input determines the number of indices")
    for axis in shortened:
        end = size_from_inputs(dims[counted_axes[axis]], b.graph, b)
        data = b.op("Slice", data, b.const_i64([0]), end, b.const_i64([axis]))
    # The Reshape states the sizes: shape inference gives the Slice the smaller of two sizes.
    return b.op("Reshape", data, shape)


def _counted_axis(part: Affine) -> int | None:
    """Return the axis along which ``part`` counts 0, 1, 2, ..., None if it does not."""
    if part.start or sorted(part.steps, key=abs) != [0] * (len(part.steps) - 1) + [1]:
        return None
    return part.steps.index(1)


@rule(op("Gather", var("rows"), var("indices")))
def gather_of_all_rows(m: Match, b: Builder) -> Replacement:
    """Replace a Gather of all rows in order by a Reshape."""
    rows, indices, result = m["rows"], m["indices"], m.root.outputs[0].shape
    if rows.shape is None or indices.shape is None or result is None:
        return None
    if m.root.attributes.get_int("axis", 0) or len(indices.shape) < 2:
        return None
    flat = producer_of(rows, "Flatten", "Reshape")
    source = flat.inputs[0] if flat is not None else None
    if source is None or not counts_rows(indices, rows, source, m.constants):  # needs 1
        return None
    shape = shape_from_inputs(result.dims, b.graph, b)
    if shape is None:
        return Miss("no input determines a size of the result")
    return b.op("Reshape", source, shape)


_COUNTED = (ir.DataType.BOOL, ir.DataType.INT64)
"""Element types of positions, or of comparisons of positions."""


def _reads_counts(node: ir.Node) -> bool:
    """True if an operand may hold positions or comparisons of positions."""
    return any(value is not None and value.dtype in _COUNTED for value in node.inputs)


@rule(op(_ALL, var("first"), rest=True, where=_reads_counts))
def uniform_operand(m: Match, b: Builder) -> Replacement:
    """Replace an operand whose elements all equal one number by that number; expand the result."""
    result = m.root.outputs[0].shape
    for index, value in enumerate(m.root.inputs):
        number = _uniform(value, m)
        if number is None or value is None or value.dtype is None or result is None:
            continue
        inputs = list(m.root.inputs)
        inputs[index] = b.constant(np.asarray(number, value.dtype.numpy()))
        others = [other for i, other in enumerate(m.root.inputs) if i != index]
        missing_dims = _missing_dims(result, others)  # needs 2
        if missing_dims is None:
            return Miss("the rank of another operand is unknown")
        dims = [dim if gap else 1 for dim, gap in zip(result.dims, missing_dims, strict=True)]
        sizes = shape_from_inputs(dims, b.graph, b)
        if sizes is None:
            return Miss("no input determines a size of the result")
        small = b.add(ir.Node("", m.root.op_type, inputs, m.root.attributes.values()))[0]
        return b.op("Expand", small, sizes) if any(missing_dims) else small
    return None


def _uniform(value: ir.Value | None, m: Match) -> int | None:
    """Return the number that all elements of ``value`` equal, else None.

    Also None for a constant or an Expand, which need no rewrite.
    """
    if value is None or value.dtype not in _COUNTED:
        return None
    if may_be_constant(value) and m.array(value) is not None:
        return None
    if producer_of(value, "Expand", "ConstantOfShape") is not None:
        return None
    form = AffineProof(m.constants).of(value)
    return form.start if form is not None and form.is_uniform else None


def _missing_dims(result: ir.Shape, others: Sequence[ir.Value | None]) -> list[bool] | None:
    """Return for each dim of ``result`` whether all operands ``others`` lack it.

    A dim that they lack has to be added by an Expand. None if the shape of an operand is unknown.
    """
    shapes = [other.shape for other in others if other is not None]
    if any(shape is None for shape in shapes):
        return None
    rank = len(result)
    return [
        not any(
            len(shape) >= rank - axis and same_dim(shape[axis - rank], result[axis])
            for shape in shapes
            if shape is not None
        )
        for axis in range(rank)
    ]


def _why_kept(table: np.ndarray | None, missing_dims: Sequence[bool] | None) -> str:
    """Return why ``same_row`` keeps a Gather.

    ``table`` is None if it is not constant. ``missing_dims`` says which dims of the result all
    other operands lack; it is None if the rank of one is unknown.
    """
    if table is None:
        return "the gathered table is not constant"
    if missing_dims is None:
        return "the rank of another operand is unknown"
    return "the other operands are not proved to have all dims of the result"


@rule(op(_ALL, var("first"), rest=True), needs=("Gather",), same_shape=True)
def same_row(m: Match, b: Builder) -> Replacement:
    """Replace a Gather of the same row everywhere by that row, which then broadcasts."""
    result = m.root.outputs[0].shape
    for index, value in enumerate(m.root.inputs):
        gather = producer_of(value, "Gather")
        table = gather.inputs[0] if gather is not None else None
        if gather is None or result is None or gather.attributes.get_int("axis", 0) != 0:
            continue
        form = AffineProof(m.constants).of(gather.inputs[1])
        if form is None or not form.is_uniform or gather.inputs[1] is None:
            continue
        array = m.array(table, None)
        others = [other for i, other in enumerate(m.root.inputs) if i != index]
        missing_dims = _missing_dims(result, others)
        if array is None or missing_dims is None or any(missing_dims):  # needs 3
            return Miss(_why_kept(array, missing_dims))
        if not 0 <= form.start < array.shape[0]:  # keeps 1
            return Miss("the index is outside the table")
        inputs = list(m.root.inputs)
        inputs[index] = b.constant(array[form.start])
        return b.add(ir.Node("", m.root.op_type, inputs, m.root.attributes.values()))[0]
    return None


fold_affine_indices = rule_pass(
    "fold_affine_indices",
    __doc__,
    [gather_nd_of_positions, gather_of_all_rows, uniform_operand, same_row],
    exactness=EXACT,
)
