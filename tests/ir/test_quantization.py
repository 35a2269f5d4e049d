"""What the operators around a value say about the numbers that its integers stand for."""

import pytest

from smelt.ir import text
from smelt.ir.quantization import Quantization, quantization_of
from smelt.program.lower import lower

HEAD = "s = Constant<value_float = 0.5>() z = Constant<value = uint8 {3}>() "
READS = {
    "made": ("(float[4] x) => (uint8[4] q)", "q = QuantizeLinear(x, s, z)", (0.5, 3)),
    "read": ("(uint8[4] q) => (float[4] y)", "y = DequantizeLinear(q, s, z)", (0.5, 3)),
    "without a zero point": (
        "(uint8[4] q) => (float[4] y)",
        "y = DequantizeLinear(q, s)",
        (0.5, 0),
    ),
    "read twice alike": (
        "(uint8[4] q) => (float[4] y, float[4] v)",
        "y = DequantizeLinear(q, s, z) v = DequantizeLinear(q, s, z)",
        (0.5, 3),
    ),
    "read as two": (
        "(uint8[4] q) => (float[4] y, float[4] v)",
        "y = DequantizeLinear(q, s, z) v = DequantizeLinear(q, s)",
        None,
    ),
    "by a run": ("(uint8[4] q, float t) => (float[4] y)", "y = DequantizeLinear(q, t, z)", None),
    "plain": ("(uint8[4] q) => (uint8[4] y)", "y = Identity(q)", None),
}


@pytest.mark.parametrize("case", READS)
def test_a_value_and_its_slot_know(case: str) -> None:
    interface, body, told = READS[case]
    model = text.parse(f"g {interface} {{ {HEAD}{body} }}", 21)
    value = next(
        v
        for v in (*model.graph.inputs, *(v for n in model.graph for v in n.outputs))
        if v.name == "q"
    )
    expected = None if told is None else Quantization(told[:1], told[1:])
    assert quantization_of(value) == expected
    program = lower(model)
    interface_slots = [program.slots[slot] for slot in {*program.inputs, *program.outputs}]
    (slot,) = (slot for slot in interface_slots if slot.name == "q")
    assert slot.quantization == expected


def test_channels_have_scales_of_their_own() -> None:
    model = text.parse(
        "g (int8[2,3] q) => (float[2,3] y) { s = Constant<value_floats = [0.5, 1.0, 2.0]>() "
        "z = Constant<value = int8[3] {0,1,2}>() y = DequantizeLinear<axis = -1>(q, s, z) }",
        21,
    )
    found = quantization_of(model.graph.inputs[0])
    assert found == Quantization((0.5, 1.0, 2.0), (0, 1, 2), 1)


def test_blocks_are_no_channels() -> None:
    model = text.parse(
        "g (int8[2,4] q) => (float[2,4] y) { s = Constant<value = float[2,2] {1,2,3,4}>() "
        "y = DequantizeLinear<axis = 1, block_size = 2>(q, s) }",
        21,
    )
    assert quantization_of(model.graph.inputs[0]) is None
