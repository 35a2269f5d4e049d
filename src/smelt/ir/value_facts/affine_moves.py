"""Affine forms after a reshape or a concatenation."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.symbolic_dims.redundant_bounds import is_one_unless_empty
from smelt.ir.value_facts.affine import Affine


def reshaped(form: Affine, before: Sequence[Dim], after: Sequence[Dim]) -> Affine | None:
    """Return ``form`` after a reshape from ``before`` to ``after``.

    None if the reshape does more than add and remove dims of size 1.
    """
    if form.is_uniform:
        return Affine(form.start, (0,) * len(after))
    dims_left = [(dim, step) for dim, step in zip(before, form.steps, strict=True) if dim != 1]
    steps = []
    for dim in after:
        if dim == 1:
            steps.append(0)
        elif dims_left and same_dim(dims_left[0][0], dim):
            steps.append(dims_left.pop(0)[1])
        else:
            return None
    return Affine(form.start, tuple(steps)) if not dims_left else None


def concatenated(forms: Sequence[Affine], sizes: Sequence[Dim], axis: int) -> Affine | None:
    """Return the form of Concat(``forms``) along ``axis``, with ``sizes`` along that axis.

    None unless each operand continues the sequence of the operand before it.
    """
    known = [1 if is_one(size) or is_one_unless_empty(size, sizes) else size for size in sizes]
    step = next((f.steps[axis] for f, size in zip(forms, known, strict=True) if size != 1), None)
    if step is None:
        step = forms[1].start - forms[0].start if len(forms) > 1 else 0
    steps = [*forms[0].steps]
    steps[axis] = step
    result, offset = Affine(forms[0].start, tuple(steps)), 0
    for index, (form, size) in enumerate(zip(forms, known, strict=True)):
        steps_here = list(form.steps)
        steps_here[axis] = step if size == 1 else steps_here[axis]
        if form.start != result.start + step * offset or tuple(steps_here) != result.steps:
            return None
        if not isinstance(size, int):
            if step and index < len(forms) - 1:
                return None
            continue
        offset += size
    return result


def is_one(dim: Dim) -> bool:
    """True if ``dim`` is 1, or an expression that is proved to be 1, such as Min(1, N)."""
    if isinstance(dim, int) or dim.value is None or dim.value.isidentifier():
        return dim == 1
    return bool(expression_of(dim) == 1)
