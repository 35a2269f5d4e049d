"""Two quantizations are equal if each parameter is proved equal."""

import pytest

from smelt.ir import text
from smelt.ir.constants import Constants
from smelt.passes.quantize.quantization import Quantization, difference

ONE = "float s = {0.5}, int8 z = {1}"
DIFFERENT = {
    "equal constants": ("int8", ONE, "", None),
    "no zero point, and one of 0": ("int8", "float s = {0.5}, int8 z = {0}", "absent", None),
    "another scale": ("int8", ONE.replace("0.5", "0.25"), "", "the scales are not proved equal"),
    "a scale that is no number": (
        "int8", ONE.replace("0.5", "nan"), "", "the scales are not proved equal"),
    "another zero point": (
        "int8", ONE.replace("{1}", "{2}"), "", "the zero points are not proved equal"),
    "another type": (
        "uint8", ONE.replace("int8", "uint8"), "",
        "the quantized types differ: INT8 and UINT8"),
    "an axis": (
        "int8", "float[2] s = {0.5,0.5}, int8[2] z = {1,1}", "<axis=1>",
        "the axes or block sizes differ"),
}  # fmt: skip


@pytest.mark.parametrize("case", DIFFERENT)
def test_the_first_parameter_that_differs(case: str) -> None:
    integer, other, how, why = DIFFERENT[case]
    first = ONE if how != "absent" else ONE.replace("{1}", "{0}")
    one = first.replace("s =", "s1 =").replace("z =", "z1 =")
    two = other.replace("s =", "s2 =").replace("z =", "z2 =")
    operands = "(b, s2)" if how == "absent" else f"{how if how != 'absent' else ''}(b, s2, z2)"
    model = text.parse(
        f"g (int8[3,2] a, {integer}[3,2] b) => (float[3,2] p, float[3,2] q) <{one}, {two}> "
        f"{{ p = DequantizeLinear(a, s1, z1) q = DequantizeLinear{operands} }}"
    )
    p, q = (Quantization.of(node) for node in model.graph)
    assert p is not None
    assert q is not None
    assert difference(p, q, Constants()) == why
    assert difference(p, p, Constants()) is None


def test_scales_that_callers_give_are_equal_to_themselves_alone() -> None:
    model = text.parse(
        "g (int8[2] a, float s, float t) => (float[2] p, float[2] q, float[2] r) "
        "{ p = DequantizeLinear(a, s) q = DequantizeLinear(a, s) r = DequantizeLinear(a, t) }"
    )
    p, q, r = (Quantization.of(node) for node in model.graph)
    assert difference(p, q, Constants()) is None
    assert difference(p, r, Constants()) == "the scales are not proved equal"


def test_without_zero_points_they_are_zeros_in_the_shape_of_the_scales() -> None:
    model = text.parse(
        "g (int8[3,2] a) => (float[3,2] p, float[3,2] q) "
        "<float[2] s = {0.5, 1}, int8[2] z = {0, 0}> "
        "{ p = DequantizeLinear<axis=1>(a, s) q = DequantizeLinear<axis=1>(a, s, z) }"
    )
    p, q = (Quantization.of(node) for node in model.graph)
    assert p is not None
    assert q is not None
    zeros = p.zero_points(Constants())
    assert zeros is not None
    assert zeros.tolist() == [0, 0]
    assert difference(p, q, Constants()) is None
