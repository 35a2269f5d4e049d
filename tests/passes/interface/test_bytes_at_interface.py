"""Quantized inputs and outputs become the integers in which the model computes."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged

import smelt
from smelt.ir import text
from smelt.passes.interface.bytes_at_interface import bytes_at_interface

STEP = "s = Constant<value_float = 0.5>() z = Constant<value = int8 {3}>() "
Q = "QuantizeLinear(x, s, z)"
INSIDE = "m = MaxPool<kernel_shape = [2]>(q) "
BOTH = f"g (float[1,2,4] x) => (float[1,2,3] y) {{ {STEP}q = {Q} {INSIDE}y = DequantizeLinear(m, s, z) }}"


def test_both_sides_become_bytes() -> None:
    after = "g (int8[1,2,4] x) => (int8[1,2,3] y) { y = MaxPool<kernel_shape = [2]>(x) }"
    check_rewrite(bytes_at_interface, BOTH, after)


KEPT = {
    "another reader": f"g (float[1,2,4] x) => (int8[1,2,3] y, float[1,2,4] n) {{ {STEP}q = {Q} {INSIDE}y = Identity(m) n = Neg(x) }}",
    "bytes that are returned": f"g (float[4] x) => (int8[4] q) {{ {STEP}q = {Q} }}",
    "an input of bytes": f"g (int8[4] x) => (float[4] y) {{ {STEP}y = DequantizeLinear(x, s, z) }}",
    "a scale per channel": (
        "g (float[2,4] x) => (int8[2,4] y) { s = Constant<value_floats = [0.5, 1.0]>() "
        "q = QuantizeLinear<axis = 0>(x, s) y = Identity(q) }"
    ),
    "a scale of the caller": f"g (float[4] x, float t) => (int8[4] y) {{ {STEP}q = QuantizeLinear(x, t, z) y = Identity(q) }}",
    "floats": "g (float[4] x) => (float[4] y) { y = Neg(x) }",
    "bytes as numbers": f"g (float[4] x) => (float[4] y) {{ {STEP}e = Exp(x) q = QuantizeLinear(e, s, z) y = Cast<to = 1>(q) }}",
    "both are returned": (
        f"g (float[4] x) => (int8[4] q, float[4] y) {{ {STEP}e = Exp(x) q = QuantizeLinear(e, s, z) "
        "y = DequantizeLinear(q, s, z) }"
    ),
    "32 bits": f"g (float[4] x) => (float[4] y) {{ {STEP}c = Cast<to = 6>(x) y = DequantizeLinear(c, s) }}",
    "numbers of two scales": (
        f"g (float[4] x) => (float[4] y) {{ {STEP}t = Constant<value_float = 0.25>() q = {Q} "
        "y = DequantizeLinear(q, t, z) }"
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_keeps(name: str) -> None:
    check_unchanged(bytes_at_interface, KEPT[name])


def test_a_value_that_is_read_inside_is_dequantized_there() -> None:
    graph = (
        f"g (int8[1,2,4] q) => (float[1,2,3] y, float[1,2,3] n) {{ {STEP}"
        f"{INSIDE}y = DequantizeLinear(m, s, z) n = Neg(y) }}"
    )
    after = (
        f"g (int8[1,2,4] q) => (int8[1,2,3] y, float[1,2,3] n) {{ {STEP}"
        f"y = MaxPool<kernel_shape = [2]>(q) d = DequantizeLinear(y, s, z) n = Neg(d) }}"
    )
    check_rewrite(bytes_at_interface, graph, after)


def test_the_library_reads_bytes_and_states_their_scale() -> None:
    inside = "d = DequantizeLinear(q, s, z) e = Exp(d) f = QuantizeLinear(e, t, z) y = DequantizeLinear(f, t, z)"
    graph = f"g (float[4] x) => (float[4] y) {{ {STEP}t = Constant<value_float = 0.25>() q = {Q} {inside} }}"
    pipeline = "default,bytes-at-interface"
    artifact = smelt.compile(
        text.parse(graph, 21), target="c", pipeline=pipeline, verify="final", name="m"
    )
    header = artifact.files["m.h"].decode()
    assert "#define M_INPUT0_TYPE int8_t" in header
    assert "#define M_INPUT0_SCALE 0.5f" in header
    assert "#define M_OUTPUT0_SCALE 0.25f" in header
    assert artifact.report["memory"]["arena_bytes"] == 0
    np.testing.assert_array_equal(artifact(np.array([1, 3, 5, 9], np.int8))[0], [4, 7, 14, 83])
