"""Operands get the layouts that their operators declare, with as few conversions as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from lowered import lowered
from staged import run

from smelt.errors import InternalError, UsageError
from smelt.program.chips.layouts import (
    ANY,
    RELAYOUT,
    Layouts,
    LayoutsOf,
    verify_layouts,
    with_layouts,
)
from smelt.program.instruction import Program
from smelt.program.layout import Layout

NHWC, BLOCKED = Layout("NCHW", "NHWC"), Layout("NCHW", "NCHW4c")
WEIGHTS = Layout("OIHW", "HWIO4o")
CONV = Layouts((NHWC, WEIGHTS), (NHWC,))
TABLE: Mapping[str, LayoutsOf] = {
    "Conv": CONV,
    "Relu": ANY,
    "Add": ANY,
    "MaxPool": Layouts((BLOCKED,), (BLOCKED,)),
}
W = "w = Constant<value = float[2,2,1,1] {1,2,3,4}>()"
X = "(float[1,2,3,3] x) => (float[1,2,3,3] y)"


def converted(body: str, interface: str = X, *, packs: bool = False) -> Program:
    """Return the program in layouts, after checks of its layouts and its results."""
    source = lowered(f"g {interface} {{ {body} }}")
    made = with_layouts(source, TABLE, interface=packs)
    verify_layouts(made, TABLE)
    arrays = [
        np.random.default_rng(1).standard_normal(source.slots[s].sizes) for s in source.inputs
    ]
    floats = [array.astype(np.float32) for array in arrays]
    for got, wanted in zip(run(made, *floats), run(source, *floats), strict=True):
        np.testing.assert_array_equal(got, wanted)
    return made


def moves(program: Program) -> list[str]:
    return [
        f"{program.slots[i.inputs[0]].layout} > {program.slots[i.outputs[0]].layout}"
        for i in program.instructions
        if i.op == RELAYOUT
    ]


def test_weights_are_packed_and_operands_converted_at_the_border() -> None:
    made = converted(f"{W} y = Conv(x, w)")
    assert moves(made) == ["None > NHWC", "NHWC > None"]
    (slot,) = made.constants
    assert made.slots[slot].layout == WEIGHTS
    assert made.constants[slot].tolist() == [[[[[1, 3, 0, 0]], [[2, 4, 0, 0]]]]]
    assert not made.constants[slot].flags.writeable


def test_conversions_cancel_between_operators_and_through_elementwise_ones() -> None:
    body = f"{W} a = Conv(x, w) b = Relu(a) c = Add(b, a) d = Conv(c, w) y = Relu(d)"
    assert len(moves(converted(body))) == 2


def test_a_group_takes_the_layout_with_the_fewest_bytes_to_convert() -> None:
    """Two of the three operands of the sum are blocked, so the sum is, too."""
    pool = "MaxPool<kernel_shape = [1,1]>"
    made = converted(f"{W} a = Conv(x, w) b = {pool}(x) s = Add(a, b) c = {pool}(s) y = {pool}(c)")
    assert Counter(moves(made)) == {
        "None > NHWC": 1, "None > NCHW4c": 1, "NHWC > NCHW4c": 1, "NCHW4c > None": 1,
    }  # fmt: skip


def test_readers_share_a_conversion() -> None:
    made = converted(f"{W} a = Conv(x, w) b = Conv(x, w) y = Add(a, b)")
    assert moves(made) == ["None > NHWC", "NHWC > None"]
    assert len(made.constants) == 1


def test_elementwise_operators_alone_convert_nothing() -> None:
    made = converted("a = Relu(x) y = Add(a, x)")
    assert moves(made) == []


def test_a_broadcast_operand_keeps_its_operator_row_by_row() -> None:
    body = f"{W} a = Conv(x, w) b = Constant<value = float[2,1,1] {{1,2}}>() y = Add(a, b)"
    assert moves(converted(body)) == ["None > NHWC", "NHWC > None"]


def test_with_interface_the_caller_packs_inputs_and_outputs() -> None:
    made = with_layouts(
        lowered(f"g {X} {{ {W} a = Relu(x) b = Conv(a, w) y = Relu(b) }}"), TABLE, interface=True
    )
    assert moves(made) == []
    assert {made.slots[slot].layout for slot in (*made.inputs, *made.outputs)} == {NHWC}


def test_an_input_and_a_constant_that_are_outputs_stay_as_they_are() -> None:
    made = converted(f"{W} y = Conv(x, w) z = Identity(x) v = Identity(w)",
                     "(float[1,2,3,3] x) => (float[1,2,3,3] y, float[1,2,3,3] z, float[2,2,1,1] v)")  # fmt: skip
    assert all(made.slots[slot].layout is None for slot in made.outputs)
    assert len(made.constants) == 2


def test_a_function_may_choose_layouts_by_attributes() -> None:
    def by_group(program: Program, instruction: object) -> Layouts:
        return CONV

    source = lowered(f"g {X} {{ {W} y = Conv(x, w) }}")
    assert len(moves(with_layouts(source, {"Conv": by_group}))) == 2


def test_a_layout_of_another_rank_is_refused() -> None:
    source = lowered("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    with pytest.raises(UsageError, match=r"the layout 'NHWC' does not fit '.'"):
        with_layouts(source, {"Relu": Layouts((NHWC,), (NHWC,))})


def test_verify_finds_operands_in_another_layout() -> None:
    source = lowered(f"g {X} {{ {W} y = Conv(x, w) }}")
    with pytest.raises(InternalError, match="finds its tensors as rows, rows, rows"):
        verify_layouts(source, TABLE)
    made = with_layouts(source, TABLE)
    (slot,) = made.constants
    damaged = replace(made, constants={slot: made.constants[slot].reshape(-1)})
    with pytest.raises(InternalError, match="does not have the sizes of its layout"):
        verify_layouts(damaged, TABLE)
