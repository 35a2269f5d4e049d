"""The affine forms of Gather, GatherElements and GatherND: affine data read at affine indices."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.value_facts.affine import Affine, uniform
from smelt.ir.value_facts.affine_rule import Proof, rank_of


def _indexed_by(form: Affine, axis: int, index: Affine, others: list[int]) -> Affine:
    """Return the form of data with ``form`` whose ``axis`` is read at the affine ``index``.

    ``index`` and ``others`` have one step for each axis of the result; ``others`` are the steps of
    the other axes of the data.
    """
    chosen = index.scaled(form.steps[axis])
    return Affine(form.start, tuple(others)).plus(chosen)


def _is_counted_from_0(index: Affine, indices: ir.Value | None) -> bool:
    """True if no element of ``indices``, whose affine form is ``index``, is negative."""
    if indices is None or indices.shape is None:
        return False
    return _is_not_negative(index, indices.shape.dims)


def _is_not_negative(index: Affine, dims: tuple[ir.SymbolicDim | int, ...]) -> bool:
    """True if no element of a tensor of shape ``dims`` with the form ``index`` is negative."""
    low, _ = index.bounds(dims)
    return low is not None and low >= 0


def gather(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of Gather, or None.

    Uniform data stay uniform. Affine data need affine indices of at least 0, because negative ones
    count from the end.
    """
    data, index = (proof.of(operand, depth) for operand in node.inputs)
    if data is not None and data.is_uniform:
        return uniform(data.start, rank_of(value))
    if data is None or index is None or not _is_counted_from_0(index, node.inputs[1]):
        return None
    axis = node.attributes.get_int("axis", 0) % len(data.steps)
    steps_before, steps_after = data.steps[:axis], data.steps[axis + 1 :]
    index_on_result_axes = Affine(index.start, (0,) * axis + index.steps + (0,) * len(steps_after))
    return _indexed_by(
        data, axis, index_on_result_axes, [*steps_before, *(0 for _ in index.steps), *steps_after]
    )


def gather_elements(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of GatherElements, under the same conditions as Gather; else None."""
    data, index = (proof.of(operand, depth) for operand in node.inputs)
    if data is not None and data.is_uniform:
        return data
    if data is None or index is None or not _is_counted_from_0(index, node.inputs[1]):
        return None
    axis = node.attributes.get_int("axis", 0) % len(data.steps)
    others = [0 if i == axis else step for i, step in enumerate(data.steps)]
    return _indexed_by(data, axis, index, others)


def gather_nd(proof: Proof, node: ir.Node, value: ir.Value, depth: int) -> Affine | None:
    """Return the form of GatherND, under the same conditions as Gather and without batch dims."""
    data = proof.of(node.inputs[0], depth)
    if data is not None and data.is_uniform:
        return uniform(data.start, rank_of(value))
    indices = node.inputs[1]
    if data is None or node.attributes.get_int("batch_dims", 0) != 0:
        return None
    components = proof.parts(indices, depth)
    if components is None or indices is None or indices.shape is None:
        return None
    if not all(_is_not_negative(component, indices.shape.dims[:-1]) for component in components):
        return None
    unindexed_steps = data.steps[len(components) :]
    form = Affine(data.start, (0,) * (len(indices.shape) - 1) + unindexed_steps)
    for step, component in zip(data.steps, components, strict=False):
        form = form.plus(
            Affine(component.start, component.steps + (0,) * len(unindexed_steps)).scaled(step)
        )
    return form
