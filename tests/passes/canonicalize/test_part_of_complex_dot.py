"""A complex product of which one part is read becomes a real product."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged

import smelt
from smelt.passes.canonicalize.part_of_complex_dot import part_of_complex_dot

HEAD = """<ir_version: 10, opset_import: ["" : 23, "smelt" : 1]>
g (float[B,3,2] x, float[3,4,2] y) => (float[B,4,1] z)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] four = {4},
 int64[1] back = {-1}, int64[1] least = {-2147483648}, int64[2] both = {1, 2},
 int64[2] start = {0, 0}, int64[2] end = {2, 1},
 float[2] minus = {1.0, -1.0}, float[2] lower = {-1.0, 1.0}> """
DIMS = "lhs_contracting=[1], rhs_contracting=[0]"
REAL = "lhs_contracting=[1,2], rhs_contracting=[0,2]"
RE, IM = "z = Slice(t, zero, one, two, one)", "z = Slice(t, one, two, two, one)"
SWAP = "s = Slice(y, one, least, two, back)"


def product(flags: str = "") -> str:
    every = ", ".join(filter(None, (DIMS, "pairs=1", flags)))
    return f"t = smelt.DotGeneral<{every}>(x, y)"


def real(right: str) -> str:
    return f"r = smelt.DotGeneral<{REAL}>(x, {right}) z = Unsqueeze(r, two)"


L, R = "lhs_conj=1", "rhs_conj=1"
TAKEN = {
    "real": (f"{product()} {RE}", f"s = Mul(y, minus) {real('s')}"),
    "real, left conjugated": (f"{product(L)} {RE}", real("y")),
    "real, right conjugated": (f"{product(R)} {RE}", real("y")),
    "real, both conjugated": (f"{product(f'{L}, {R}')} {RE}", f"s = Mul(y, minus) {real('s')}"),
    "imaginary": (f"{product()} {IM}", f"{SWAP} {real('s')}"),
    "imaginary, left conjugated": (
        f"{product(L)} {IM}",
        f"{SWAP} u = Mul(s, minus) {real('u')}",
    ),
    "imaginary, right conjugated": (
        f"{product(R)} {IM}",
        f"{SWAP} u = Mul(s, lower) {real('u')}",
    ),
    "counted from the end": (
        f"{product(L)} z = Slice(t, back, four, two, one)",
        f"{SWAP} u = Mul(s, minus) {real('u')}",
    ),
}


@pytest.mark.parametrize(("before", "after"), TAKEN.values(), ids=TAKEN)
def test_takes(before: str, after: str) -> None:
    check_rewrite(part_of_complex_dot, f"{HEAD} {{ {before} }}", f"{HEAD} {{ {after} }}")


KEPT = {
    "both parts": f"{product()} z = Slice(t, zero, two, two, one)",
    "both parts, turned": f"{product()} z = Slice(t, one, least, two, back)",
    "no part": f"{product()} z = Slice(t, two, four, two, one)",
    "rows": f"{product()} z = Slice(t, zero, one, one, one)",
    "a part of some rows": f"{product()} z = Slice(t, start, end, both)",
    "another reader": f"{product()} u = {RE[4:]} v = {IM[4:]} z = Add(u, v)",
    "real operands": "t = smelt.DotGeneral<lhs_contracting=[1,2], rhs_contracting=[0,2]>(x, y) z = Slice(t, zero, one, one)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_keeps(body: str) -> None:
    head = HEAD.replace("float[B,4,1] z", "z")
    check_unchanged(part_of_complex_dot, f"{head} {{ {body} }}")


def test_a_product_that_is_returned_stays() -> None:
    head = HEAD.replace("=> (", "=> (float[B,4,2] t, ")
    check_unchanged(part_of_complex_dot, f"{head} {{ {product()} {RE} }}")


def test_the_host_computes_the_real_part_alone() -> None:
    """With batch dims; the imaginary part of another product, too."""
    rng = np.random.default_rng(0)
    a, b = (
        (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
        for shape in ((2, 5, 4), (2, 4, 3))
    )

    def parts(a: jax.Array, b: jax.Array) -> jax.Array:
        return (a.conj() @ b).real + (b.mT @ a.mT.conj()).mT.imag

    wanted = (a.conj() @ b).real + (a.conj() @ b).imag
    artifact = smelt.compile(parts, a, b, target="host", engine="native")
    results: Any = artifact(a, b)
    np.testing.assert_allclose(results[0], wanted, rtol=1e-4, atol=1e-5)
    assert artifact.report["taken"]["MatMul"] == 2
    assert "smelt.DotGeneral" not in artifact.report["taken"]
