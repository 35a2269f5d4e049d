"""Decide which nodes of a model compute in a half type and which stay in float32, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import Constants
from smelt.passes.precision.half_places import WIDE, Places, half_places
from smelt.passes.precision.sensitive import READ_EXACTLY, SENSITIVE
from smelt.precision.half_border import HEAVY, border_of
from smelt.precision.half_limits import Limits
from smelt.precision.keep import Keep
from smelt.precision.ranges import Ranges

NO_FORM = "no form in this type"
BETWEEN = "short of a pair of casts"
ASKED = "kept on request"


@dataclass
class Plan:
    """The type in which each node of a model computes.

    ``places`` maps nodes in ``half`` to the indices of operands and of results that become half.
    ``kept`` maps nodes that stay in float32 to the reason. Nodes without floats are in neither.
    """

    half: ir.DataType
    places: dict[ir.Node, Places] = field(default_factory=dict)
    kept: dict[ir.Node, str] = field(default_factory=dict)

    def reasons(self) -> Counter[str]:
        """Return how many nodes stay in float32 for each reason."""
        return Counter(self.kept.values())


def plan_half(
    model: ir.Model,
    half: ir.DataType,
    keep: Keep,
    ranges: Ranges,
    further: Mapping[ir.Node, str],
    *,
    half_interface: bool = False,
) -> Plan:
    """Return which nodes of ``model`` compute in ``half``.

    Nodes without a form in ``half``, and those for which ``_reasons`` finds a reason, stay in
    float32. So do the nodes in ``further``, at which an earlier plan failed, for the reason there.
    A minimum cut decides the others, such that casts are few.
    """
    version, constants = model.opset_imports.get("", 1), Constants()
    plan = Plan(half)
    possible: dict[ir.Node, Places] = {}
    fixed: dict[ir.Node, str] = {}
    for node in scope.nodes(model):
        places = _cast_places(node) or half_places(node, version, half)
        if places is not None:
            possible[node] = places
        elif _writes_floats(node):
            fixed[node] = NO_FORM
    fixed |= further
    for node, reason in _reasons(possible, keep, Limits(half, constants), ranges):
        fixed.setdefault(node, reason)
    border = border_of(model, possible, fixed, constants, half, half_interface=half_interface)
    in_half = border.nodes_in_half()
    for node, places in possible.items():
        if node in in_half:
            plan.places[node] = places
        elif node.op_type != "Cast":
            plan.kept[node] = fixed.get(node, BETWEEN)
    return plan


def _reasons(
    possible: Mapping[ir.Node, Places], keep: Keep, limits: Limits, ranges: Ranges
) -> Iterator[tuple[ir.Node, str]]:
    """Yield nodes in ``possible`` that must stay in float32, each with the reason.

    It is that the user names the node, or that a constant is beyond the range of half. If ``keep``
    is automatic, it may also be the operator, a tiny constant, or a measured range.
    """
    for node, places in possible.items():
        reason = ASKED if keep.names(node) else None
        reason = reason or limits.constant_reason(node, places)
        if keep.automatic:
            reason = reason or (SENSITIVE.get(node.op_type) if not node.domain else None)
            reason = reason or limits.scalar_reason(node, places)
            reason = reason or limits.range_reason(node, places, ranges)
        if reason is not None:
            yield node, reason
    if keep.automatic:
        yield from _exact_operands(possible, ranges).items()


def _cast_places(node: ir.Node) -> Places | None:
    """Return the places of a Cast from integers or bools to float32: the result may be half.

    None for any other node.
    """
    if node.op_type != "Cast" or node.domain or node.inputs[0] is None:
        return None
    source = node.inputs[0].dtype
    if node.outputs[0].dtype != WIDE or source is None:
        return None
    return None if source.is_floating_point() or source == ir.DataType.STRING else ([], [0])


def _writes_floats(node: ir.Node) -> bool:
    """True if a result of ``node`` is of float32."""
    return any(value.dtype == WIDE for value in node.outputs)


def _exact_operands(possible: Mapping[ir.Node, Places], ranges: Ranges) -> dict[ir.Node, str]:
    """Return nodes that must not round, because angles or whole numbers are computed from them.

    Each comes with the reason. The search starts at nodes that need exact operands, such as Sin and
    Floor, and follows operands back to products of weights, which round anyway. A start whose
    operands are all at most 1 is skipped, because half has enough bits there.
    """
    exact: dict[ir.Node, str] = {}
    pending: list[tuple[ir.Node, str]] = []
    for node in possible:
        if node.op_type in READ_EXACTLY:
            pending.append((node, READ_EXACTLY[node.op_type]))
    for node in possible:
        if _becomes_integer(node):
            pending.append((node, READ_EXACTLY["Floor"]))
    while pending:
        node, reason = pending.pop()
        if node in exact:
            continue
        if node.op_type in READ_EXACTLY and _reads_small_numbers(node, ranges):
            continue
        exact[node] = reason
        for value in node.inputs:
            producer = None if value is None else value.producer()
            if producer is not None and producer in possible and not _is_product(producer):
                pending.append((producer, reason))
    return exact


def _reads_small_numbers(node: ir.Node, ranges: Ranges) -> bool:
    """True if every float operand of ``node`` is measured, and at most 1."""
    measured = [ranges.of(v) for v in node.inputs if v is not None and v.dtype == WIDE]
    return bool(measured) and all(
        each is not None and each.is_finite and each.magnitude <= 1 for each in measured
    )


def _becomes_integer(node: ir.Node) -> bool:
    """True if a Cast to an integer type reads a result of ``node``."""
    for value in node.outputs:
        for use in value.uses() if value.dtype == WIDE else ():
            if use.node.op_type == "Cast" and not use.node.domain:
                to = use.node.outputs[0].dtype
                if to is not None and to.is_integer():
                    return True
    return False


def _is_product(node: ir.Node) -> bool:
    """True for a product that sums; False for an outer product, a MatMul over an axis of size 1.

    Rotary embeddings compute their angles (positions times frequencies) by such an outer product.
    """
    if node.op_type not in HEAVY:
        return False
    left = node.inputs[0]
    if node.op_type == "MatMul" and left is not None and left.shape is not None and left.shape:
        return left.shape[-1] != 1
    return True
