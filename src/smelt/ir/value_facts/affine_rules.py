"""The affine form of an operator's result, given the affine forms of its operands.

A tensor of integers has an affine form if each element is ``start + step * i + step * j + ...`` of
its index ``(i, j, ...)``, with one step per axis (``affine.py``). It is uniform if all steps are 0:
all its elements are ``start``. Booleans count as 0 and 1.

Each rule requests operand forms from the proof and returns the form of the result, or None.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from smelt.ir.node_inputs import optional_input
from smelt.ir.opset import RESHAPES
from smelt.ir.same_shape import same_dim
from smelt.ir.value_facts.affine import COMPARISONS, Affine, uniform
from smelt.ir.value_facts.affine_gathers import gather, gather_elements, gather_nd
from smelt.ir.value_facts.affine_moves import concatenated, reshaped
from smelt.ir.value_facts.affine_rule import Proof, Rule, rank_of
from smelt.ir.value_facts.dim_from_shape import dim_from_shape


def _broadcast_operand(
    proof: Proof, operand: ir.Value | None, value: ir.Value, depth: int
) -> Affine | None:
    """Return the form of ``operand`` broadcast to the shape of ``value``, the result of the node.

    None if a dim with a nonzero step is not proved equal to that of ``value``: a dim of size 1
    would be repeated.
    """
    form = proof.of(operand, depth)
    if form is None or operand is None or operand.shape is None or value.shape is None:
        return None
    dims = value.shape.dims[len(value.shape) - len(form.steps) :]
    for step, dim, result in zip(form.steps, operand.shape.dims, dims, strict=True):
        if step and not same_dim(dim, result):
            return None
    return form.broadcast_to_rank(len(value.shape))


def _range(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of Range; None unless start and step are constant.

    The limit sets only the size, so it is not read.
    """
    start, step = (proof.constants.scalar(node.inputs[i]) for i in (0, 2))
    return Affine(start, (step,)) if isinstance(start, int) and isinstance(step, int) else None


def _constant_of_shape(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of ConstantOfShape; None unless its value is an integer or a boolean."""
    filler = node.attributes.get("value")
    number = filler.as_tensor().numpy().reshape(()).item() if filler is not None else 0
    return uniform(int(number), rank_of(value)) if isinstance(number, int) else None


def _identity(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of the operand of an Identity; None if it has none."""
    return proof.of(node.inputs[0], depth)


def _cast(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of the operand. A cast to bool needs a uniform operand, else it is None."""
    form = proof.of(node.inputs[0], depth)
    if form is None or value.dtype != ir.DataType.BOOL:
        return form
    return uniform(form.start != 0, len(form.steps)) if form.is_uniform else None


def _expand(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of Expand: that of the operand, broadcast; None if the operand has none."""
    return _broadcast_operand(proof, node.inputs[0], value, depth)


def _reshape(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of Reshape, Squeeze, Unsqueeze or Flatten.

    None if the operator does more than add and remove dims of size 1.
    """
    form, source = proof.of(node.inputs[0], depth), node.inputs[0]
    if form is None or source is None or source.shape is None or value.shape is None:
        return None
    return reshaped(form, source.shape.dims, value.shape.dims)


def _transpose(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of the operand with its steps permuted; None if it has none."""
    form = proof.of(node.inputs[0], depth)
    if form is None:
        return None
    default = range(len(form.steps) - 1, -1, -1)
    perm = node.attributes["perm"].as_ints() if "perm" in node.attributes else default
    return Affine(form.start, tuple(form.steps[axis] for axis in perm))


def _slice(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of a Slice; None if it is not proved.

    ``x[first::slice_step]`` of ``start + step * i`` is ``(start + step * first) + step * slice_step
    * i``. The ``ends`` change only the size, so they are not read.
    """
    form, rank = proof.of(node.inputs[0], depth), rank_of(value)
    firsts = proof.constants.ints(node.inputs[1])
    axes_input = optional_input(node, 3)
    slice_steps_input = optional_input(node, 4)
    if form is None or firsts is None:
        return form if form is not None and form.is_uniform else None
    axes = proof.constants.ints(axes_input) if axes_input is not None else tuple(range(len(firsts)))
    slice_steps = (
        proof.constants.ints(slice_steps_input)
        if slice_steps_input is not None
        else (1,) * len(firsts)
    )
    if axes is None or slice_steps is None:
        return form if form.is_uniform else None
    start, steps = form.start, list(form.steps)
    for first, axis, slice_step in zip(firsts, axes, slice_steps, strict=True):
        if steps[axis] and (first < 0 or slice_step < 1):
            return None
        start += steps[axis] * (first if steps[axis] else 0)
        steps[axis] *= slice_step
    return Affine(start, tuple(steps)) if len(steps) == rank else None


def _concat(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of Concat; None unless each operand continues the sequence before it."""
    forms = [proof.of(operand, depth) for operand in node.inputs]
    known_forms = [form for form in forms if form is not None]
    if len(known_forms) < len(forms):
        return None
    axis = node.attributes.get_int("axis", 0) % rank_of(value)
    sizes = [part.shape[axis] for part in node.inputs if part is not None and part.shape]
    return concatenated(known_forms, sizes, axis) if len(sizes) == len(known_forms) else None


def _sum(sign: int) -> Rule:
    """Return the rule of ``a + sign * b``: Add for a ``sign`` of 1, Sub for -1."""

    def rule(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
        """Return the sum of the two broadcast operands' forms; None if one is not proved."""
        a, b = (_broadcast_operand(proof, operand, value, depth) for operand in node.inputs)
        return a.plus(b.scaled(sign)) if a and b else None

    return rule


def _mul(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of a product; None unless one factor is uniform."""
    left, right = (_broadcast_operand(proof, operand, value, depth) for operand in node.inputs)
    if left is None or right is None or not (left.is_uniform or right.is_uniform):
        return None
    return right.scaled(left.start) if left.is_uniform else left.scaled(right.start)


def _compared(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of a comparison whose result is the same for all elements, or None.

    The bounds of ``left - right`` decide it: a difference of at least 1 makes Greater true.
    """
    rank = rank_of(value)
    left, right = (proof.of(operand, depth) for operand in node.inputs)
    if node.op_type == "LessOrEqual" and left is not None and right is None:
        return uniform(1, rank) if _ends_at(node.inputs[0], left, node.inputs[1]) else None
    if left is None or right is None or value.shape is None:
        return None
    left, right = (_broadcast_operand(proof, operand, value, depth) for operand in node.inputs)
    if left is None or right is None:
        return None
    difference_bounds = left.plus(right.scaled(-1)).bounds(value.shape.dims)
    truth = COMPARISONS[node.op_type](*difference_bounds)
    return uniform(truth, rank) if truth is not None else None


def _ends_at(counted: ir.Value | None, form: Affine, last: ir.Value | None) -> bool:
    """True if no element of ``counted`` is larger than ``last``.

    ``counted`` is 0, 1, 2, ... along one axis, and ``last`` is the size of that axis, or one less.
    """
    dim = dim_from_shape(last)
    if dim is None or counted is None or counted.shape is None or form.start:
        return False
    if sum(map(abs, form.steps)) != 1 or 1 not in form.steps:
        return False
    size = counted.shape[form.steps.index(1)]
    return same_dim(size, dim) or same_dim(size, dim + 1)


def _logical(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of And or Or; None if operands without a form may change the result.

    Every proved boolean tensor is uniform. One uniform operand can decide: false for And, true for
    Or.
    """
    forms = [proof.of(operand, depth) for operand in node.inputs]
    decisive = 0 if node.op_type == "And" else 1
    known = [form.start for form in forms if form is not None]
    if decisive in known:
        return uniform(decisive, rank_of(value))
    return uniform(1 - decisive, rank_of(value)) if len(known) == len(forms) else None


def _logical_not(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of Not; None if the operand has none. A proved boolean tensor is uniform."""
    form = proof.of(node.inputs[0], depth)
    return uniform(1 - form.start, len(form.steps)) if form is not None else None


def _where(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of the operand that a uniform condition selects.

    None if the condition is not proved uniform, or if that operand has no form.
    """
    choice = proof.of(node.inputs[0], depth)
    if choice is None:
        return None
    return _broadcast_operand(proof, node.inputs[1 if choice.start else 2], value, depth)


def _cumsum(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of CumSum of a uniform tensor; None for other tensors.

    Zeros stay zeros, and c becomes c, 2c, 3c, ...
    """
    form, axis = proof.of(node.inputs[0], depth), proof.constants.scalar(node.inputs[1])
    is_plain_sum = not any(node.attributes.get_int(name, 0) for name in ("exclusive", "reverse"))
    if form is None or not form.is_uniform:
        return None
    if form.start == 0:
        return form
    if not is_plain_sum or not isinstance(axis, int):
        return None
    steps = [0] * len(form.steps)
    steps[axis] = form.start
    return Affine(form.start, tuple(steps))


RULES: Mapping[str, Rule] = {
    "Range": _range,
    "ConstantOfShape": _constant_of_shape,
    "Identity": _identity,
    "Cast": _cast,
    "Expand": _expand,
    **dict.fromkeys(RESHAPES, _reshape),
    "Transpose": _transpose,
    "Slice": _slice,
    "Concat": _concat,
    "Add": _sum(1),
    "Sub": _sum(-1),
    "Mul": _mul,
    **dict.fromkeys(COMPARISONS, _compared),
    **dict.fromkeys(("And", "Or"), _logical),
    "Not": _logical_not,
    "Where": _where,
    "CumSum": _cumsum,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
}
"""The rule of each operator."""
