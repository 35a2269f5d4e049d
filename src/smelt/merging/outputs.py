"""Outputs of two branches: the same names in the same order.

A decoder that reads cached keys and values of an encoder does not return them again, so the branch
with past lacks outputs that the branch of the first step has. For such an output, the branch with
past returns an empty tensor, as in files of optimum, or the cached input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import onnx_ir as ir

from smelt.errors import ErrorList, SmeltError, UsageError, listed
from smelt.merging.common_dims import CommonDims, Side, as_dim, as_number_or_text

SHOWN = 4
"""How many names of outputs an error lists."""

Caches = Literal["empty", "repeated"]
"""What the branch with past returns for a cache that it only reads: an empty tensor or the
input."""


def align_outputs(
    first: ir.Model, second: ir.Model, caches: Caches, names: tuple[str, str]
) -> list[str]:
    """Give ``second`` the outputs of ``first`` in the same order; return the names of those that
    it lacked.

    Raises E666 if ``second`` has further outputs or other element types, and E672 for a missing
    output of fixed size, which cannot be empty.
    """
    second_outputs = {value.name: value for value in second.graph.outputs}
    first_names = {value.name for value in first.graph.outputs}
    further = [str(name) for name in second_outputs if name not in first_names]
    errors: list[SmeltError] = [_further_outputs_error(further, names)] if further else []
    aligned: list[ir.Value] = []
    missing: list[str] = []
    for value in first.graph.outputs:
        output = second_outputs.get(value.name)
        if output is None:
            output = _cached(second, value) if caches == "repeated" else None
            output = output or _empty(second, value, errors, names)
            missing.append(str(value.name))
        else:
            errors += differences("output", value, output, names)
        aligned.append(output)
    if errors:
        raise errors[0] if len(errors) == 1 else ErrorList(errors)
    second.graph.outputs[:] = aligned
    return missing


def merged_shape(dims: CommonDims, a: ir.Value, b: ir.Value) -> ir.Shape | None:
    """Return the shape of the output of an If whose branches return ``a`` and ``b``.

    A dim that both branches name alike in the merged model keeps that name; any other pair of dims
    gets a name of its own. None if the ranks differ or are unknown.
    """
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return None
    merged: list[Side] = []
    for axis, (first_dim, second_dim) in enumerate(zip(a.shape.dims, b.shape.dims, strict=True)):
        second_names = dims.translated(second_dim, 1)
        common_names = [each for each in dims.translated(first_dim, 0) if each in second_names]
        merged += common_names[:1] or [
            dims.pair(
                as_number_or_text(first_dim), as_number_or_text(second_dim), f"{a.name}_{axis}"
            )
        ]
    return ir.Shape([as_dim(each) for each in merged])


def return_results(graph: ir.Graph) -> None:
    """Make every output of ``graph`` the result of a node in ``graph``, and of one output only.

    An output that is an input, a weight, a value of an outer graph, or the same value as an earlier
    output becomes the result of an Identity, under the same name.
    """
    returned: set[ir.Value] = set()
    for position, value in enumerate(graph.outputs):
        producer = value.producer()
        if producer is not None and producer.graph is graph and value not in returned:
            returned.add(value)
            continue
        node = ir.node("Identity", [value], name=f"return_{value.name}")
        graph.append(node)
        copy = graph.outputs[position] = node.outputs[0]
        copy.name, copy.type, copy.shape = value.name, value.type, value.shape


def _cached(model: ir.Model, output: ir.Value) -> ir.Value | None:
    """Return the input that holds the cache ``output``: ``past_key_values.0.encoder.key`` for
    ``present.0.encoder.key``."""
    tail = str(output.name).partition(".")[2]
    same = [v for v in model.graph.inputs if tail and str(v.name).partition(".")[2] == tail]
    return same[0] if len(same) == 1 and same[0].type == output.type else None


def _empty(
    model: ir.Model, output: ir.Value, errors: list[SmeltError], names: tuple[str, str]
) -> ir.Value:
    """Add to ``model`` an empty constant in place of the missing ``output``, and return it.

    Its first symbolic dim is 0, other symbolic dims are 1. If ``output`` has no symbolic dim, E672
    is added to ``errors``.
    """
    dims = list(output.shape.dims) if output.shape is not None else []
    is_open = [not isinstance(dim, int) for dim in dims]
    is_tensor = type(output.type) is ir.TensorType and output.dtype != ir.DataType.STRING
    if True not in is_open or output.dtype is None or not is_tensor:
        errors.append(_not_empty(output, names))
        return output
    sizes = [dim if isinstance(dim, int) else 1 for dim in dims]
    sizes[is_open.index(True)] = 0
    array = np.zeros(sizes, output.dtype.numpy())
    node = ir.node("Constant", [], {"value": ir.Tensor(array, dtype=output.dtype)})
    value = node.outputs[0]
    value.name, value.type, value.shape = output.name, output.type, ir.Shape(sizes)
    model.graph.append(node)
    return value


def _further_outputs_error(outputs: list[str], names: tuple[str, str]) -> UsageError:
    """Return E666 for outputs that only the second model has."""
    return UsageError(
        "E666",
        f"{names[1]} returns {listed(outputs, SHOWN)}, and {names[0]} does not",
        why="the first step must compute every output of the merged model",
        fix="export both models with the same names of outputs, or swap the two files",
    )


def differences(
    word: str, a: ir.Value, b: ir.Value, names: tuple[str, str]
) -> Iterator[UsageError]:
    """Yield E666 if an input or output has another type or rank in the second model."""
    ranks = {len(value.shape) for value in (a, b) if value.shape is not None}
    if a.type == b.type and len(ranks) < 2:
        return
    types = [f"{name}: {type_in_words(value)}" for name, value in zip(names, (a, b), strict=True)]
    yield UsageError(
        "E666",
        f"the {word} {a.name!r} differs between the models",
        at=types,
        why="the merged model has one element type and one rank for it",
        fix="export both models from the same network, with the same types",
    )


def type_in_words(value: ir.Value) -> str:
    """Return the type of ``value`` as text: ``float[batch_size,5]``."""
    dims = "?" if value.shape is None else ",".join(map(str, value.shape.dims))
    return f"{value.dtype.name.lower() if value.dtype is not None else value.type}[{dims}]"


def _not_empty(output: ir.Value, names: tuple[str, str]) -> UsageError:
    """Return E672 for an output that has no empty form."""
    return UsageError(
        "E672",
        f"{names[1]} does not return {output.name!r}, and its size is fixed",
        why="the branch with past returns an empty tensor for it, which needs a symbolic dim",
        fix="--repeat-caches returns the cached input instead; or let both models return it",
    )
