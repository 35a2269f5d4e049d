"""Reduction step: replace weights by zeros, or by random numbers of the same scale."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir

from smelt.check.reduction.search import Search
from smelt.check.scrub import SMALL, scrub


def forget_weights(search: Search) -> bool:
    """Replace weights by random numbers, then one by one by zeros; True if any were replaced."""
    if not any(_is_weight(value) for value in search.model.graph.initializers.values()):
        return False
    any_replaced = search.attempt(_random)
    for name, value in list(search.model.graph.initializers.items()):
        if _is_weight(value):
            any_replaced |= search.attempt(partial(_zeros, name=name))
    return any_replaced


def _is_weight(value: ir.Value) -> bool:
    """True if ``value`` is a constant of more than ``SMALL`` elements that are not all zero."""
    tensor = value.const_value
    if tensor is None or tensor.size <= SMALL or tensor.dtype == ir.DataType.STRING:
        return False
    return bool(np.any(tensor.numpy() != 0))


def _random(model: ir.Model) -> bool:
    """Replace all weights by random numbers of the same scale; always True."""
    scrub(model)
    return True


def _zeros(model: ir.Model, name: str) -> bool:
    """Replace the initializer ``name`` by zeros; always True."""
    value = model.graph.initializers[name]
    assert value.const_value is not None
    tensor = value.const_value
    value.const_value = ir.Tensor(
        np.zeros(tensor.shape.numpy(), tensor.dtype.numpy()), tensor.dtype, name=name
    )
    return True
