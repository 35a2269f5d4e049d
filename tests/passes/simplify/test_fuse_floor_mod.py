"""The remainder of Python and JAX becomes one Mod."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.fuse_floor_mod import fuse_floor_mod

BODY = "r = Mod<fmod=1>(x, n) l = Less(r, zero) {between} a = Add(r, m) y = Where({of}, a, r)"
PLAIN = BODY.format(between="", of="l")
GUARDED = BODY.format(between="e = Equal(r, zero) t = Not(e) c = And(t, l)", of="c")


def graph(body: str, dtype: str = "int32", n: str = "4", m: str = "4", k: str = "") -> str:
    return (
        f"g ({dtype}[N,2] x) => ({dtype}[N,2] y) <{dtype}{k} n = {{{n}}}, {dtype}{k} m = {{{m}}}, "
        f"{dtype} zero = {{0}}> {{ {body} }}"
    )


@pytest.mark.parametrize(
    "body", [PLAIN, GUARDED, PLAIN.replace("Less(r, zero)", "Greater(zero, r)")]
)
@pytest.mark.parametrize(
    ("dtype", "opset"),
    [("int8", 14), ("int8", 25), *((t, opset) for t in ("int32", "int64") for opset in (13, 25))],
)
def test_one_mod(body: str, dtype: str, opset: int) -> None:
    check_rewrite(fuse_floor_mod, graph(body, dtype), graph("y = Mod(x, n)", dtype), opset=opset)


def test_signs() -> None:
    x = np.asarray([[-9, -8], [-1, 0], [7, 8], [-(2**31), 2**31 - 1]], np.int32)
    check_rewrite(fuse_floor_mod, graph(GUARDED), graph("y = Mod(x, n)"), feeds={"x": x})


def test_a_divisor_for_each_column() -> None:
    check_rewrite(
        fuse_floor_mod,
        graph(PLAIN, n="3,5", m="3,5", k="[2]"),
        graph("y = Mod(x, n)", n="3,5", k="[2]"),
    )


KEPT = {
    "another number is added": graph(PLAIN, m="5"),
    "a negative divisor": graph(PLAIN, n="-4", m="-4"),
    "one divisor of 0": graph(PLAIN, n="4,0", m="4,0", k="[2]"),
    "floats": graph(PLAIN, "float"),
    "unsigned": graph(PLAIN, "uint8"),
    "no fmod": graph(PLAIN.replace("<fmod=1>", "")),
    "the remainder is read elsewhere": graph(
        PLAIN.replace("Where(l, a, r)", "Where(l, a, z)").replace(" y =", " z = Neg(r) y =")
    ),
    "a caller's divisor": "g (int32[N] x, int32 n) => (int32[N] y) <int32 zero = {0}> { "
    + PLAIN.replace("Add(r, m)", "Add(r, n)")
    + " }",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(fuse_floor_mod, source)
