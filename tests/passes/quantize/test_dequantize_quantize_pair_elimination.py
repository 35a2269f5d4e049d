import numpy as np
import onnx_ir as ir
import pytest
from rewrites import check_operators, check_rewrite, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.quantize.dequantize_quantize_pair_elimination import (
    dequantize_quantize_pair_elimination as the_pass,
)

# A float16 or bfloat16 literal is given by its bits: 11878 and 15821 are 0.1, 24752 is 600.
PAIR = "{{ d = DequantizeLinear{0}(x, s, z)  y = QuantizeLinear{0}(d, s, z) }}"

DROPPED = {
    "uint8": ("uint8", "float s = {0.1}, uint8 z = {3}", PAIR.format(""), 13),
    "int8": ("int8", "float s = {0.1}, int8 z = {-3}", PAIR.format(""), 13),
    "opset 10": ("int8", "float s = {0.1}, int8 z = {-3}", PAIR.format(""), 10),
    "int16": ("int16", "float s = {0.1}, int16 z = {-3}", PAIR.format(""), 21),
    "uint16": ("uint16", "float s = {0.1}, uint16 z = {9}", PAIR.format(""), 21),
    "float16 scale": ("int8", "float16 s = {11878}, int8 z = {-3}", PAIR.format(""), 19),
    "bfloat16 scale of int4": ("int4", "bfloat16 s = {15821}, int4 z = {1}", PAIR.format(""), 21),
    "an axis": (
        "int8",
        "float[4] s = {0.1, 1e-9, 3, 1e9}, int8[4] z = {0, -128, 127, 5}",
        PAIR.format("<axis=1>"),
        13,
    ),
    "the same axis counted from either end": (
        "int8",
        "float[4] s = {0.1, 0.2, 3, 4}, int8[4] z = {0, 1, 2, 5}",
        "{ d = DequantizeLinear<axis=-2>(x, s, z)  y = QuantizeLinear(d, s, z) }",
        13,
    ),
    "axes of one scale": (
        "int8",
        "float s = {0.1}, int8 z = {0}",
        "{ d = DequantizeLinear<axis=2>(x, s, z)  y = QuantizeLinear<axis=0>(d, s, z) }",
        13,
    ),
    "blocks": (
        "int8",
        "float[1,2,2] s = {0.1, 0.2, 3, 4}, int8[1,2,2] z = {0, 1, 2, 5}",
        PAIR.format("<axis=1, block_size=2>"),
        21,
    ),
    "no zero points": (
        "uint8",
        "float s = {0.1}",
        "{ d = DequantizeLinear(x, s)  y = QuantizeLinear(d, s) }",
        13,
    ),
    "absent zero point and 0": (
        "int8",
        "float s = {0.1}, int8 z = {0}",
        "{ d = DequantizeLinear(x, s)  y = QuantizeLinear(d, s, z) }",
        13,
    ),
    "type by attribute": (
        "int8",
        "float s = {0.1}",
        "{ d = DequantizeLinear(x, s)  y = QuantizeLinear<output_dtype=3>(d, s) }",
        21,
    ),
    "equal scales in two constants": (
        "uint8",
        "float s = {0.1}, float[1] t = {0.1}",
        "{ d = DequantizeLinear(x, s)  y = QuantizeLinear(d, t) }",
        13,
    ),
    "scale of half the largest float over the steps": (
        "uint8",
        "float s = {6.6e35}",
        "{ d = DequantizeLinear(x, s)  y = QuantizeLinear(d, s) }",
        13,
    ),
}


@pytest.mark.parametrize(("dtype", "constants", "body", "opset"), DROPPED.values(), ids=DROPPED)
def test_drops_the_pair(dtype: str, constants: str, body: str, opset: int) -> None:
    shape = "1,4,2" if "block" in body or "[4]" in constants else "N,4"
    head = f"g ({dtype}[{shape}] x) => ({dtype}[{shape}] y)"
    check_rewrite(
        the_pass,
        before=f"{head} <{constants}> {body}",
        after=f"{head} {{ y = Identity(x) }}",
        opset=opset,
    )


@pytest.mark.parametrize("scale", ["1.1754944e-38", "0.1", "0.33333334", "1e30", "1.3e36"])
@pytest.mark.parametrize("zero_point", [-128, -1, 0, 127])
def test_every_int8_survives(scale: str, zero_point: int) -> None:
    check_operators(
        the_pass,
        f"g (int8[256] x) => (int8[256] y) <float s = {{{scale}}}, int8 z = {{{zero_point}}}>"
        + PAIR.format(""),
        ["Identity"],
        feeds={"x": np.arange(-128, 128).astype(np.int8)},
    )


def test_other_readers_keep_the_dequantized_value() -> None:
    check_rewrite(
        the_pass,
        before="g (int8[N] x) => (float[N] d, int8[N] w) <float s = {0.1}, int8 z = {1}>"
        "{ i = Abs(x) d = DequantizeLinear(i, s, z) q = QuantizeLinear(d, s, z) w = Neg(q) }",
        after="g (int8[N] x) => (float[N] d, int8[N] w) <float s = {0.1}, int8 z = {1}>"
        "{ i = Abs(x) d = DequantizeLinear(i, s, z) w = Neg(i) }",
    )


def test_drops_inside_a_branch_what_an_outer_graph_made() -> None:
    check_rewrite(
        the_pass,
        before=IN_A_BRANCH.format("d = DequantizeLinear(x, s)  t = QuantizeLinear(d, s)"),
        after=IN_A_BRANCH.format("t = Identity(x)"),
    )


IN_A_BRANCH = """g (bool c, uint8[4] x) => (uint8[4] y) <float s = {{0.1}}> {{
    y = If(c) <then_branch = g1 () => (uint8[4] t) {{ {} }},
               else_branch = g2 () => (uint8[4] e) {{ e = BitwiseNot(x) }}>
}}"""


def test_keeps_in_a_function_whose_types_are_those_of_its_callers() -> None:
    model = text.parse(
        """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (uint8[4] x) => (uint8[4] y) { y = local.f(x) }
        <domain: "local", opset_import: ["" : 21]>
        f (x) => (y) {
            s = Constant<value_float=0.5>()  d = DequantizeLinear(x, s)  y = QuantizeLinear(d, s)
        }"""
    )
    assert run_pass(the_pass, model).rewrites == 0


KEPT = {
    "another scale": (
        "int8",
        "float s = {0.1}, float t = {0.4}, int8 z = {0}",
        "{ d = DequantizeLinear(x, s, z)  y = QuantizeLinear(d, t, z) }",
    ),
    "scales one ulp apart": (
        "int8",
        "float s = {0.1}, float t = {0.10000001}, int8 z = {0}",
        "{ d = DequantizeLinear(x, s, z)  y = QuantizeLinear(d, t, z) }",
    ),
    "another zero point": (
        "int8",
        "float s = {0.1}, int8 z = {0}, int8 w = {1}",
        "{ d = DequantizeLinear(x, s, z)  y = QuantizeLinear(d, s, w) }",
    ),
    "another axis": (
        "int8",
        "float[4] s = {1, 2, 3, 4}, int8[4] z = {0, 0, 0, 0}",
        "{ d = DequantizeLinear<axis=0>(x, s, z)  y = QuantizeLinear<axis=1>(d, s, z) }",
    ),
    "scale 0": ("int8", "float s = {0}, int8 z = {0}", PAIR.format("")),
    "negative scale": ("int8", "float s = {-1}, int8 z = {0}", PAIR.format("")),
    "scale below the normal ones": ("int8", "float s = {1e-40}, int8 z = {0}", PAIR.format("")),
    "products overflow": ("int8", "float s = {3e36}, int8 z = {0}", PAIR.format("")),
    "products overflow in float16": ("int8", "float16 s = {24752}, int8 z = {0}", PAIR.format("")),
    "int16 in float16": ("int16", "float16 s = {8479}, int16 z = {0}", PAIR.format("")),
    "int8 in bfloat16": ("int8", "bfloat16 s = {15821}, int8 z = {0}", PAIR.format("")),
    "result in float16": (
        "int8",
        "float s = {0.1}, int8 z = {0}",
        "{ d = DequantizeLinear<output_dtype=10>(x, s, z)  y = QuantizeLinear(d, s, z) }",
    ),
    "division in float16": (
        "int8",
        "float s = {0.1}, int8 z = {0}",
        "{ d = DequantizeLinear(x, s, z)  y = QuantizeLinear<precision=10>(d, s, z) }",
    ),
    "quantize before dequantize": (
        "float",
        "float s = {0.1}, int8 z = {0}",
        "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }",
    ),
    "one scale of many is another": (
        "int8",
        "float[4] s = {1, 2, 3, 4}, float[4] t = {1, 2, 3, 5}, int8[4] z = {0, 0, 0, 0}",
        "{ d = DequantizeLinear(x, s, z)  y = QuantizeLinear(d, t, z) }",
    ),
}


@pytest.mark.parametrize(("dtype", "constants", "body"), KEPT.values(), ids=KEPT)
def test_keeps(dtype: str, constants: str, body: str) -> None:
    check_unchanged(the_pass, f"g ({dtype}[4,4] x) => ({dtype}[4,4] y) <{constants}> {body}")


def test_keeps_another_integer_type() -> None:
    check_unchanged(
        the_pass,
        "g (int8[4] x) => (uint8[4] y) <float s = {0.1}>"
        "{ d = DequantizeLinear(x, s)  y = QuantizeLinear(d, s) }",
    )


@pytest.mark.parametrize("head", ["(int8[4] x, float s)", "(int8[4] x, float s = {0.1})"])
def test_keeps_a_scale_that_callers_give(head: str) -> None:
    inputs = head.replace(" = {0.1}", "")
    default = "<float s = {0.1}, int8 z = {0}>" if "=" in head else "<int8 z = {0}>"
    check_unchanged(the_pass, f"g {inputs} => (int8[4] y) {default} {PAIR.format('')}")


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_keeps_scales_that_are_no_numbers(special: float) -> None:
    graph = f"g (int8[4] x) => (int8[4] y) <float s = {{1}}, int8 z = {{0}}> {PAIR.format('')}"
    model = text.parse(graph)
    model.graph.initializers["s"].const_value = ir.Tensor(np.asarray(special, np.float32))
    assert run_pass(the_pass, model).rewrites == 0
