"""Take a merged decoder apart: one model for the prompt, one for a step.

merged   ids, mask, pasts, use_cache_branch ─> If(use_cache_branch) ─> logits, presents
parts    the same with use_cache_branch = True, and with False and without pasts
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.cloning import clone_model


def parts_of(model: ir.Model) -> tuple[ir.Model, ir.Model | None]:
    """Return the model of a step, and that of the prompt if ``model`` is a merged decoder.

    A merged decoder has one input bool[1] or bool[], which chooses a branch.
    """
    choices = [
        value
        for value in model.graph.inputs
        if value.dtype == ir.DataType.BOOL and _is_one_element(value.shape)
    ]
    if len(choices) != 1:
        return model, None
    name = choices[0].name or ""
    return _chosen(model, name, is_step=True), _chosen(model, name, is_step=False)


def _is_one_element(shape: ir.Shape | None) -> bool:
    """True for the shapes [] and [1]."""
    return shape is not None and list(shape.dims) in ([], [1])


def _chosen(model: ir.Model, name: str, *, is_step: bool) -> ir.Model:
    """Return a copy of ``model`` whose bool input ``name`` is the constant ``is_step``."""
    copy = clone_model(model)
    graph = copy.graph
    value = next(each for each in graph.inputs if each.name == name)
    rank = 0 if value.shape is None else len(value.shape)
    value.const_value = ir.tensor(np.full((1,) * rank, is_step), name=name)
    graph.inputs.remove(value)
    graph.register_initializer(value)
    return copy
