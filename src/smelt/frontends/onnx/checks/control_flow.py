"""Subgraphs of control flow: counts of inputs and outputs, and types carried around loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.frontends.onnx.checks.walk import place

Types = Mapping[ir.Value, ir.DataType]
"""Element types inferred from operators; values without one count as declared."""


@dataclass(frozen=True)
class Fit:
    """What a node requires of one of its graphs.

    ``inputs`` and ``outputs`` are counts. ``pairs`` are values that must have equal types, each
    with its description.
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
        for kind, given, wanted in (
            ("inputs", len(fit.graph.inputs), fit.inputs),
            ("outputs", len(fit.graph.outputs), fit.outputs),
        ):
            if given != wanted:
                raise _unfit(node, f"graph {fit.graph.name!r} has {given} {kind}, not {wanted}")
        for value in fit.graph.inputs:
            if value.is_initializer():
                raise _unfit(node, f"its input {value.name!r} is a weight of its graph, too")
        for words, one, other in fit.pairs:
            _check_pair(node, words, one, other, types)


def _check_pair(
    node: ir.Node, words: str, one: ir.Value | None, other: ir.Value | None, types: Types
) -> None:
    """Raise InvalidModel E309 if two values have different known types."""
    first, second = _type(one, types), _type(other, types)
    if first is None or second is None or first == second:
        return
    raise InvalidModel(
        "E309",
        "the element types do not agree",
        at=place(node),
        why=f"{words} have the types {first} and {second}",
        fix="export the model again with types that agree, or put a Cast between them",
    )


def _type(value: ir.Value | None, types: Types) -> str | None:
    """Return the type of ``value`` as text without shape; None if it is unknown."""
    # A body may take an optional as its content.
    if value is None or isinstance(value.type, ir.OptionalType):
        return None
    if value.type is not None and not isinstance(value.type, ir.TensorType):
        return type(value.type).__name__.removesuffix("Type").lower()
    dtype = types.get(value, value.dtype)
    return None if dtype is None or dtype == ir.DataType.UNDEFINED else dtype.name.lower()


def _if(node: ir.Node, version: int) -> Iterable[Fit]:
    """Yield the requirements on both branches of an If."""
    branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    for branch in branches:
        pairs = [
            ("the results of an If and of its branch", one, other)
            for one, other in zip(node.outputs, branch.outputs, strict=False)
        ]
        yield Fit(branch, 0, len(node.outputs), pairs)
    then, other = (branch.outputs for branch in branches)
    both = [("the results of two branches", a, b) for a, b in zip(then, other, strict=False)]
    yield Fit(branches[1], 0, len(node.outputs), both)


def _loop(node: ir.Node, version: int) -> Iterable[Fit]:
    """Yield the requirements on a Loop's body.

    Inputs are trip count, condition and carried values; the body takes the iteration number first.
    """
    body = node.attributes["body"].as_graph()
    carried = len(node.inputs) - 2
    pairs = [("the condition and its next value", *_ends(body.inputs[1:2], body.outputs[:1]))]
    pairs += _carried(node.inputs[2:], body.inputs[2:], body.outputs[1:], node.outputs, carried)
    pairs += _collected(body.outputs[1 + carried :], node.outputs[carried:])
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
            wanted = scanned if "output" not in name else collected
            _check_options(node, name, values.as_ints(), wanted)
    pairs = _carried(inputs, body.inputs, body.outputs, node.outputs, carried)
    pairs += _collected(body.outputs[carried:], node.outputs[carried:])
    pairs += _collected(body.inputs[carried:], inputs[carried:])
    yield Fit(body, len(inputs), len(node.outputs), pairs)


def _check_options(node: ir.Node, name: str, values: Sequence[int], wanted: int) -> None:
    if len(values) != wanted:
        raise _unfit(node, f"{name} has {len(values)} entries, not {wanted}")
    if name.endswith("directions") and not set(values) <= {0, 1}:
        raise _unfit(node, f"{name} holds something else than 0, forward, and 1, backward")


def _sequence_map(node: ir.Node, version: int) -> Iterable[Fit]:
    body = node.attributes["body"].as_graph()
    yield Fit(body, len(node.inputs), len(node.outputs), ())


def _carried(
    given: Sequence[ir.Value | None],
    taken: Sequence[ir.Value],
    returned: Sequence[ir.Value],
    results: Sequence[ir.Value],
    count: int,
) -> list[tuple[str, ir.Value | None, ir.Value | None]]:
    """Return pairs of the values carried into a loop, through its body and out of it."""
    words = "a value that goes round and its next value"
    pairs: list[tuple[str, ir.Value | None, ir.Value | None]] = []
    for some in (taken, returned, results):
        pairs += [(words, *pair) for pair in zip(given[:count], some[:count], strict=False)]
    pairs += [(words, *pair) for pair in zip(taken[:count], returned[:count], strict=False)]
    return pairs


def _collected(
    inner: Sequence[ir.Value], outer: Sequence[ir.Value | None]
) -> list[tuple[str, ir.Value | None, ir.Value | None]]:
    """Return pairs of slices in the body and their whole tensors outside."""
    words = "a slice and its whole"
    return [(words, *pair) for pair in zip(inner, outer, strict=False)]


def _ends(
    one: Sequence[ir.Value], other: Sequence[ir.Value]
) -> tuple[ir.Value | None, ir.Value | None]:
    return (one[0] if one else None), (other[0] if other else None)


def _unfit(node: ir.Node, why: str) -> InvalidModel:
    return InvalidModel(
        "E322",
        "a subgraph does not fit its node",
        at=place(node),
        why=why,
        fix="give the subgraph the inputs and outputs that the node needs",
    )


_FITS: Mapping[str, Callable[[ir.Node, int], Iterable[Fit]]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _sequence_map,
}
