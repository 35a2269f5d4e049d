"""Missing weights: initializers whose shape and dtype are known before a checkpoint is read.

A model of billions of weights converts in little memory this way. A missing weight is an
initializer without a tensor. It is no constant: rules and shape inference treat it like an input.
Writing or running a model that still has one raises E342.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir

from smelt.errors import InvalidModel, listed
from smelt.ir import scope

if TYPE_CHECKING:
    from smelt.ir.build import Builder

SHOWN = 5
"""How many names an error lists."""

MISSING = "smelt.missing_weight"
"""Key in the ``meta`` of an initializer: this weight has no tensor yet."""

EXPECTED = "smelt.weights"
"""Key in the ``meta`` of a main graph: the names of all weights that the source expects from a
checkpoint, including weights that the model does not read."""


def add_missing_weight(
    builder: Builder, name: str, dtype: ir.DataType, dims: Sequence[int]
) -> ir.Value:
    """Return a new missing weight of this dtype and shape in the graph of ``builder``."""
    value = ir.Value(
        name=builder.free_name(name),
        type=ir.TensorType(dtype),
        shape=ir.Shape(dims, frozen=True),
    )
    value.meta[MISSING] = True
    builder.graph.initializers.add(value)
    return value


def is_missing_weight(value: ir.Value) -> bool:
    """True if ``value`` is a missing weight: an initializer that has no tensor yet."""
    return value.const_value is None and MISSING in value.meta


def fill(value: ir.Value, tensor: ir.TensorProtocol) -> None:
    """Give the missing weight ``value`` its tensor."""
    value.const_value = tensor
    del value.meta[MISSING]


def missing_weights(model: ir.Model) -> dict[str, ir.Value]:
    """Return the missing weights of the main graph by name."""
    return {
        name: value for name, value in model.graph.initializers.items() if is_missing_weight(value)
    }


def forget_unread(model: ir.Model) -> None:
    """Drop the missing weights that nothing reads; a checkpoint need not contain them."""
    for name, value in missing_weights(model).items():
        if scope.is_dead(value):
            del model.graph.initializers[name]


def refuse_missing_weights(model: ir.Model, doing: str) -> None:
    """Raise InvalidModel E342 if a weight is missing; ``doing`` says what was to be done to the
    model."""
    names = list(missing_weights(model))
    if names:
        raise refusal(names, doing)


def refusal(names: Sequence[str], doing: str) -> InvalidModel:
    """Return the error E342: the weights ``names`` are missing, so the model cannot be
    ``doing``."""
    return InvalidModel(
        "E342",
        f"weights without numbers cannot be {doing}: {listed(names, SHOWN)}",
        why="the function was traced with abstract weights",
        fix="smelt.fill_weights(model, checkpoint), or smelt convert --weights CHECKPOINT",
    )
