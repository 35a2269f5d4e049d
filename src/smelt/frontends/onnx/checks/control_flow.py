"""Check subgraphs of control flow: counts of inputs and outputs, and types carried around loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.frontends.onnx.checks.walk import place_of_node

Types = Mapping[ir.Value, ir.DataType]
"""Element types inferred from operators; values without one count as declared."""


@dataclass(frozen=True)
class Fit:
    """The requirements of a node on one of its graphs.

    ``inputs`` and ``outputs`` are counts. ``pairs`` holds ``(description, value, value)`` for every
    two values that must have equal types.
    """

    graph: ir.Graph
    inputs: int
    outputs: int
    pairs: Iterable[tuple[str, ir.Value | None, ir.Value | None]]


def check_body(node: ir.Node, version: int, types: Types) -> None:
    """Raise InvalidModel E322 if a graph of ``node`` does not fit it, E309 if types differ.

    ``version`` is the opset version.
    """
    fits = _FITS.get(node.op_type) if not node.domain else None
    if fits is None:
        return
    for fit in fits(node, version):
        for kind, count, required in (
            ("inputs", len(fit.graph.inputs), fit.inputs),
            ("outputs", len(fit.graph.outputs), fit.outputs),
        ):
            if count != required:
                raise _unfit(node, f"graph {fit.graph.name!r} has {count} {kind}, not {required}")
        for value in fit.graph.inputs:
            if value.is_initializer():
                raise _unfit(node, f"the graph input {value.name!r} is also a weight of the graph")
        for description, first, second in fit.pairs:
            _check_pair(node, description, first, second, types)


def _check_pair(
    node: ir.Node, description: str, first: ir.Value | None, second: ir.Value | None, types: Types
) -> None:
    """Raise InvalidModel E309 if two values have different known types."""
    first_type, second_type = _type(first, types), _type(second, types)
    if first_type is None or second_type is None or first_type == second_type:
        return
    raise InvalidModel(
        "E309",
        "the element types do not agree",
        at=place_of_node(node),
        why=f"{description} have the types {first_type} and {second_type}",
        fix="export the model again with types that agree, or put a Cast between them",
    )


def _type(value: ir.Value | None, types: Types) -> str | None:
    """Return the type of ``value`` as text without shape; None if it is unknown."""
    # A body may declare the content of an optional in place of the optional.
    if value is None or isinstance(value.type, ir.OptionalType):
        return None
    if value.type is not None and not isinstance(value.type, ir.TensorType):
        return type(value.type).__name__.removesuffix("Type").lower()
    dtype = types.get(value, value.dtype)
    return None if dtype is None or dtype == ir.DataType.UNDEFINED else dtype.name.lower()


def _if(node: ir.Node, version: int) -> Iterable[Fit]:
    """Yield the requirements on both branches of an If.

    The last Fit compares the results of the two branches with each other, because the types of the
    node's own results may be unknown.
    """
    branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    for branch in branches:
        pairs = [
            ("the results of an If and of its branch", result, branch_result)
            for result, branch_result in zip(node.outputs, branch.outputs, strict=False)
        ]
        yield Fit(branch, 0, len(node.outputs), pairs)
    then_results, else_results = (branch.outputs for branch in branches)
    pairs_of_results = [
        ("the results of two branches", a, b)
        for a, b in zip(then_results, else_results, strict=False)
    ]
    yield Fit(branches[1], 0, len(node.outputs), pairs_of_results)


def _loop(node: ir.Node, version: int) -> Iterable[Fit]:
    """Yield the requirements on a Loop's body.

    Inputs are trip count, condition and carried values; the body takes the iteration number first.
    """
    body = node.attributes["body"].as_graph()
    carried = len(node.inputs) - 2
    pairs = [
        ("the condition and its next value", *_first_of_each(body.inputs[1:2], body.outputs[:1]))
    ]
    pairs += _pairs_of_carried(
        node.inputs[2:], body.inputs[2:], body.outputs[1:], node.outputs, carried
    )
    pairs += _pairs_of_collected(body.outputs[1 + carried :], node.outputs[carried:])
    yield Fit(body, 2 + carried, 1 + len(node.outputs), pairs)


def _scan(node: ir.Node, version: int) -> Iterable[Fit]:
    """Yield the requirements on a Scan's body.

    Inputs are carried and scanned values; opset 8 has sequence lengths before them.
    """
    body = node.attributes["body"].as_graph()
    inputs = node.inputs[1:] if version == 8 else node.inputs
    scanned = node.attributes["num_scan_inputs"].as_int()
    carried = len(inputs) - scanned
    collected = len(node.outputs) - carried
    if scanned < 1 or carried < 0 or collected < 0:
        raise _unfit(node, f"{scanned} of its {len(inputs)} inputs cannot be scanned")
    for name, values in node.attributes.items():
        if name.endswith(("directions", "_axes")):
            required = scanned if "output" not in name else collected
            _check_options(node, name, values.as_ints(), required)
    pairs = _pairs_of_carried(inputs, body.inputs, body.outputs, node.outputs, carried)
    pairs += _pairs_of_collected(body.outputs[carried:], node.outputs[carried:])
    pairs += _pairs_of_collected(body.inputs[carried:], inputs[carried:])
    yield Fit(body, len(inputs), len(node.outputs), pairs)


def _check_options(node: ir.Node, name: str, values: Sequence[int], required: int) -> None:
    """Raise E322 for a wrong number of directions or axes, and for directions not 0 or 1."""
    if len(values) != required:
        raise _unfit(node, f"{name} has {len(values)} entries, not {required}")
    if name.endswith("directions") and not set(values) <= {0, 1}:
        raise _unfit(node, f"{name} may contain only 0 (forward) and 1 (backward)")


def _sequence_map(node: ir.Node, version: int) -> Iterable[Fit]:
    """Yield the requirements on the body of a SequenceMap."""
    body = node.attributes["body"].as_graph()
    yield Fit(body, len(node.inputs), len(node.outputs), ())


def _pairs_of_carried(
    initial: Sequence[ir.Value | None],
    body_inputs: Sequence[ir.Value],
    body_outputs: Sequence[ir.Value],
    results: Sequence[ir.Value],
    count: int,
) -> list[tuple[str, ir.Value | None, ir.Value | None]]:
    """Return ``(description, value, value)`` for values that must have one type.

    For each carried value, these are the initial value and each of the body's input, the body's
    output and the node's result; then the body's input and output.
    """
    description = "a carried value and its next value"
    pairs: list[tuple[str, ir.Value | None, ir.Value | None]] = []
    for values in (body_inputs, body_outputs, results):
        pairs += [
            (description, *pair) for pair in zip(initial[:count], values[:count], strict=False)
        ]
    inputs_and_outputs = zip(body_inputs[:count], body_outputs[:count], strict=False)
    return [*pairs, *((description, *pair) for pair in inputs_and_outputs)]


def _pairs_of_collected(
    inner: Sequence[ir.Value], outer: Sequence[ir.Value | None]
) -> list[tuple[str, ir.Value | None, ir.Value | None]]:
    """Return ``(description, slice in the body, stacked tensor outside)`` for each slice."""
    description = "a slice and the tensor that contains it"
    return [(description, *pair) for pair in zip(inner, outer, strict=False)]


def _first_of_each(
    first_values: Sequence[ir.Value], second_values: Sequence[ir.Value]
) -> tuple[ir.Value | None, ir.Value | None]:
    """Return the first value of each list, None if it is empty."""
    first = first_values[0] if first_values else None
    second = second_values[0] if second_values else None
    return first, second


def _unfit(node: ir.Node, why: str) -> InvalidModel:
    """Return E322 for a graph of ``node``."""
    return InvalidModel(
        "E322",
        "a subgraph does not fit its node",
        at=place_of_node(node),
        why=why,
        fix="give the subgraph the inputs and outputs that the node needs",
    )


_FITS: Mapping[str, Callable[[ir.Node, int], Iterable[Fit]]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _sequence_map,
}
