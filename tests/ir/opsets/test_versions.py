"""The IR version that a model needs at least."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.errors import Unsupported
from smelt.ir import text
from smelt.ir.opsets.versions import (
    TRACED,
    TYPES,
    lowest_ir_version,
    set_ir_version,
    traced_opset,
)

PLAIN = "g (float[2] x) => (float[2] y) { y = Neg(x) }"
WITH_A_WEIGHT = "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Mul(x, w) }"


def test_weights_of_their_own_need_version_4() -> None:
    assert lowest_ir_version(text.parse(PLAIN)) == 3
    model = text.parse(WITH_A_WEIGHT)
    assert lowest_ir_version(model) == 4
    model.graph.inputs.append(model.graph.initializers["w"])
    assert lowest_ir_version(model) == 3


def test_functions_need_version_8() -> None:
    model = text.parse(
        '<ir_version: 8, opset_import: ["" : 18, "local" : 1]> '
        "g (float[2] x) => (float[2] y) { y = local.twice(x) } "
        '<domain: "local", opset_import: ["" : 18]> twice (x) => (y) { y = Add(x, x) }'
    )
    assert lowest_ir_version(model) == 8


@pytest.mark.parametrize(("name", "version"), TYPES.items())
def test_an_element_type_needs_its_version(name: str, version: int) -> None:
    model = text.parse(PLAIN)
    model.graph.inputs[0].type = ir.TensorType(ir.DataType[name])
    assert lowest_ir_version(model) == version


def test_a_lower_version_than_that_is_refused() -> None:
    model = text.parse(WITH_A_WEIGHT, 18)
    set_ir_version(model, None)
    for version in (8, 10):
        set_ir_version(model, version)
        assert model.ir_version == version
    with pytest.raises(Unsupported, match="E232"):
        set_ir_version(model, 7)


@pytest.mark.parametrize(
    ("asked", "traced"), [(17, 18), (18, 18), (19, 19), (25, 25), (TRACED[0] - 5, TRACED[0])]
)
def test_functions_are_traced_for_the_lowest_opset_at_least(asked: int, traced: int) -> None:
    assert traced_opset(asked) == {"opset": traced}


def test_functions_are_traced_for_any_opset_unless_one_is_asked_for() -> None:
    assert traced_opset(None) == {}
