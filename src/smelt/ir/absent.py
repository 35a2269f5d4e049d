"""Weights of which only the type is known until a checkpoint gives their numbers.

A model of billions of weights converts in little memory that way. Such a weight is an initializer
that holds no tensor, so it is no constant: to rules and to shape inference it is a value like an
input. What needs its numbers, such as a file or a run, is refused by E342.
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

ABSENT = "smelt.absent"
"""In the ``meta`` of an initializer: its numbers are not there yet."""

EXPECTED = "smelt.weights"
"""In the ``meta`` of a main graph: the names of all weights that the source expects from a
checkpoint, also of those that the model does not read."""


def absent(builder: Builder, name: str, dtype: ir.DataType, dims: Sequence[int]) -> ir.Value:
    """A new initializer of this type in the graph of ``builder``, without numbers."""
    value = ir.Value(
        name=builder.free_name(name),
        type=ir.TensorType(dtype),
        shape=ir.Shape(dims, frozen=True),
    )
    value.meta[ABSENT] = True
    builder.graph.initializers.add(value)
    return value


def is_absent(value: ir.Value) -> bool:
    """True for an initializer that waits for its numbers."""
    return value.const_value is None and ABSENT in value.meta


def fill(value: ir.Value, tensor: ir.TensorProtocol) -> None:
    """Give an absent weight its numbers."""
    value.const_value = tensor
    del value.meta[ABSENT]


def absent_weights(model: ir.Model) -> dict[str, ir.Value]:
    """The initializers of the main graph that wait for their numbers, by name."""
    return {name: value for name, value in model.graph.initializers.items() if is_absent(value)}


def forget_unread(model: ir.Model) -> None:
    """Drop absent weights that nothing reads: no checkpoint has to have them."""
    for name, value in absent_weights(model).items():
        if scope.is_dead(value):
            del model.graph.initializers[name]


def refuse_absent(model: ir.Model, doing: str) -> None:
    """Raise InvalidModel E342 if a weight has no numbers; ``doing`` is what the model was for."""
    names = list(absent_weights(model))
    if names:
        raise refusal(names, doing)


def refusal(names: Sequence[str], doing: str) -> InvalidModel:
    """The error E342: the weights ``names`` are needed, and have no numbers yet."""
    return InvalidModel(
        "E342",
        f"weights without numbers cannot be {doing}: {listed(names, SHOWN)}",
        why="the function was traced with abstract weights",
        fix="smelt.fill_weights(model, checkpoint), or smelt convert --weights CHECKPOINT",
    )
