"""Symbolic Programs become static ones for the shapes of their inputs."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from lowered import lowered
from written import shape_of

from smelt.errors import ErrorList, UsageError
from smelt.program.specialize import check_sizes_known, is_static, specialize

FLAT = """g (float[B,S,4] x, float[B] w) => (y, w2) {
    s = Constant<value_ints=[-1,4]>()
    y = Reshape(x, s)
    w2 = Neg(w)
}"""


def test_sizes_follow_from_the_inputs() -> None:
    program = lowered(FLAT)
    check_sizes_known(program)
    assert not is_static(program)
    static = specialize(program, [(2, 3, 4), (2,)])
    assert is_static(static)
    assert shape_of(static, static.outputs[0]) == (6, 4)
    assert not is_static(program)


def test_specializing_shares_no_instruction() -> None:
    program = lowered(FLAT)
    static = specialize(program, [(2, 3, 4), (2,)])
    static.instructions[0].inputs = (99,)
    assert program.instructions[0].inputs != (99,)


MISFITS = {
    "rank": [(2, 3), (2,)],
    "a fixed size": [(2, 3, 5), (2,)],
    "one name, two sizes": [(2, 3, 4), (3,)],
}


@pytest.mark.parametrize("shapes", MISFITS.values(), ids=MISFITS.keys())
def test_shapes_that_do_not_fit(shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(UsageError, match="does not fit") as caught:
        specialize(lowered(FLAT), shapes)
    assert caught.value.code == "E670"


def test_an_expression_must_come_out_whole() -> None:
    program = lowered("g (float[N] x) => (y) { y = Neg(x) }")
    slot = program.outputs[0]
    program.slots[slot] = program.slots[slot].__class__(
        ir.DataType.FLOAT, (ir.SymbolicDim("N") - 5,), "y"
    )
    assert shape_of(specialize(program, [(7,)]), slot) == (2,)
    with pytest.raises(UsageError, match="is not a size"):
        specialize(program, [(3,)])


def test_sizes_that_only_data_decide_are_reported() -> None:
    program = lowered("g (float[6] x, int64[2] s) => (y) { r = Reshape(x, s) y = Neg(r) }")
    with pytest.raises(ErrorList) as caught:
        check_sizes_known(program)
    assert [error.code for error in caught.value.errors] == ["E411", "E411"]
    assert {error.what for error in caught.value.errors} == {
        "the size _d0 of 'r' is not known before the model runs",
        "the size _d1 of 'r' is not known before the model runs",
    }
