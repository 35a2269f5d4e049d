"""The bodies that ONNX gives operators: for which operands, and of which opsets."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir.opsets.operator_body import body_of, body_opsets

FLOAT = ir.TensorType(ir.DataType.FLOAT)


def node(op_type: str, operands: int, type_: ir.TensorType | None = FLOAT, **attributes) -> ir.Node:
    values = [ir.Value(name=f"x{i}", type=type_, shape=ir.Shape([2, 3])) for i in range(operands)]
    return ir.node(op_type, values, attributes)


@pytest.mark.parametrize(
    ("op_type", "operands", "version"),
    [("LayerNormalization", 2, 17), ("RMSNormalization", 2, 23), ("CastLike", 2, 19)],
)
def test_a_body_that_depends_on_types_needs_them(op_type: str, operands: int, version: int) -> None:
    assert isinstance(body_of(node(op_type, operands), version, version), ir.Graph)
    assert body_of(node(op_type, operands, None), version, version) is None


def test_the_opset_that_a_body_needs_is_told_if_it_is_not_imported() -> None:
    assert body_opsets("Gelu", 20) == [20]
    assert body_of(node("Gelu", 1), 20, 19) == 20
    assert isinstance(body_of(node("Gelu", 1), 20, 20), ir.Graph)


def test_operators_without_a_body_and_attributes_of_a_caller_have_none() -> None:
    assert body_opsets("Conv", 20) == body_opsets("Unheard", 20) == []
    assert body_of(node("Conv", 2), 20, 20) is None
    assert body_of(node("Unheard", 1), 20, 20) is None
    called = node("Elu", 1)
    assert isinstance(body_of(called, 18, 18), ir.Graph)
    called.attributes["alpha"] = ir.RefAttr("alpha", "a", ir.AttributeType.FLOAT)
    assert body_of(called, 18, 18) is None


def test_results_that_nobody_names_are_dropped() -> None:
    graph = body_of(node("LayerNormalization", 2), 17, 17)
    assert isinstance(graph, ir.Graph)
    assert len(graph.outputs) == 1
