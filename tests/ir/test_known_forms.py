"""Nodes that ask for more than our code knows of their operator are left alone by all of it."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from onnx import defs

from smelt.ir import text
from smelt.ir.known_forms import KNOWN_OPSET, NEWEST_READ, is_known, unknown_part

HEADS = "float[1,2,3,4]"
UNKNOWN = {
    "a window of Attention": (
        25,
        f"g ({HEADS} q) => ({HEADS} y) {{ y = Attention<left_window_size=2>(q, q, q) }}",
        "attribute 'left_window_size'",
    ),
    "another input of Attention": (
        24,
        f"g ({HEADS} q, int64[1] n) => ({HEADS} y) {{ y = Attention(q, q, q, , , , n) }}",
        "input 6",
    ),
    "a rounding of Cast": (
        24,
        'g (float[2] x) => (float8e8m0[2] y) { y = Cast<to=24, round_mode="down">(x) }',
        "attribute 'round_mode'",
    ),
    "an attribute of nobody": (
        23,
        "g (float[2] x) => (float[2] y) { y = Relu<novel=1>(x) }",
        "attribute 'novel'",
    ),
    "another output": (
        23,
        "g (float[2] x) => (float[2] y) { y, z = Relu(x) }",
        "output 1",
    ),
}


@pytest.mark.parametrize(("opset", "graph", "part"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_unknown_parts_are_named(opset: int, graph: str, part: str) -> None:
    node = text.parse(graph, opset).graph[0]
    assert not is_known(node)
    assert unknown_part(node) == part


KNOWN = {
    "no window": (
        25,
        f"g ({HEADS} q) => ({HEADS} y) {{ y = Attention<left_window_size=-1,right_window_size=-1>(q, q, q) }}",
    ),
    "the default rounding": (
        24,
        'g (float[2] x) => (float[2] y) { y = Cast<to=1, round_mode="up">(x) }',
    ),
    "an attribute that is gone": (
        13,
        "g (float[2] x) => (float[1] y) { y = ReduceMax<axes=[0]>(x) }",
    ),
    "an operator that came later": (
        24,
        "g (float[2] x) => (float[2] y) { y = Swish<alpha=2.0>(x) }",
    ),
    "any number of inputs": (23, "g (float[2] x) => (float[2] y) { y = Sum(x, x, x, x, x) }"),
    "a domain that says itself what it is": (
        23,
        "g (float[2] x) => (y) { y = custom.Thing<novel=1>(x) }",
    ),
}


@pytest.mark.parametrize(("opset", "graph"), KNOWN.values(), ids=KNOWN.keys())
def test_known_forms_have_no_unknown_part(opset: int, graph: str) -> None:
    node = text.parse(graph, opset).graph[0]
    assert is_known(node)
    assert unknown_part(node) == ""


def test_an_attribute_of_the_function_around_it_is_not_known() -> None:
    node = ir.Node("", "Elu", [None], [ir.RefAttr("alpha", "a", ir.AttributeType.FLOAT)])
    assert not is_known(node)
    assert "refers to" in unknown_part(node)


def test_every_opset_of_the_installed_onnx_was_read() -> None:
    """If this fails: read what changed in the operators listed, make the code heed it or add to
    ``LATER``, then raise ``NEWEST_READ``."""
    changed = [
        f"{schema.name} {schema.since_version}"
        for schema in defs.get_all_schemas()
        if schema.domain == "" and schema.since_version > NEWEST_READ
    ]
    assert defs.onnx_opset_version() <= NEWEST_READ, changed


def test_the_attributes_that_no_code_knows() -> None:
    """All that opsets after the known one added to operators of before."""
    added = {
        (schema.name, name)
        for schema in defs.get_all_schemas()
        if schema.domain == "" and schema.since_version > KNOWN_OPSET
        for name in schema.attributes
        if not is_known(ir.Node("", schema.name, [], [ir.AttrString(name, "?")]))
    }
    assert added == {
        *(("Attention", "left_window_size"), ("Attention", "right_window_size")),
        *(("Cast", "round_mode"), ("CastLike", "round_mode"), ("Range", "stash_type")),
    }
