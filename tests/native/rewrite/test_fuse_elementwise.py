"""Which elementwise instructions share a loop, and that each still rounds by itself."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.native.rewrite import fuse_elementwise
from smelt.native.schedule import planned
from smelt.program.instruction import Program
from smelt.program.lower import lower
from smelt.targets.host.static_programs import compile_program


def program_of(source: str) -> Program:
    model = text.parse(source)
    ShapeInference(model).infer_model()
    return lower(model)


def groups(source: str) -> list[str]:
    """The operators of each instruction, fused."""
    fused = planned(program_of(source), "test", (), (fuse_elementwise.fuse_elementwise,))
    return ["+".join(part.op for part in step.parts) or step.op for step in fused.instructions]


FUSED = {
    "a chain": ("g (float[9] x) => (y) { a = Sqrt(x) b = Neg(a) y = Add(b, x) }", ["Sqrt+Neg+Add"]),
    "a value that two of a group read": (
        "g (float[9] x) => (y) { a = Sqrt(x) b = Neg(a) c = Abs(a) y = Mul(b, c) }",
        ["Sqrt+Neg+Abs+Mul"],
    ),
    "an operand that is broadcast": (
        "g (float[3,9] x, float[9] s) => (y) { a = Mul(x, s) y = Add(a, s) }",
        ["Mul+Add"],
    ),
    "types that change": (
        "g (float[9] x, int32[9] n) => (y) { a = Cast<to=1>(n) t = Less(x, a) y = Where(t, x, a) }",
        ["Cast+Less+Where"],
    ),
    "bounds": (
        "g (float[9] x, float l) => (y) { a = Neg(x) b = Clip(a, l) y = Relu(b) }",
        ["Neg+Clip+Relu"],
    ),
}
APART = {
    "functions of math.h, which have loops of their own": (
        "g (float[9] x) => (y) { a = Exp(x) b = Neg(a) c = Abs(b) d = Tan(c) y = Sqrt(d) }",
        ["Exp+Neg+Abs", "Tan", "Sqrt"],
    ),
    "a result that is returned": (
        "g (float[9] x) => (a, y) { a = Sqrt(x) y = Neg(a) }",
        ["Sqrt", "Neg"],
    ),
    "a result that something else reads": (
        "g (float[9] x) => (y, s) { a = Sqrt(x) y = Neg(a) s = ReduceSum(a) }",
        ["Sqrt", "Neg", "ReduceSum"],
    ),
    "a result that is broadcast": (
        "g (float[9] x, float[3,9] z) => (y) { a = Sqrt(x) y = Add(a, z) }",
        ["Sqrt", "Add"],
    ),
    "two that do not read each other": (
        "g (float[9] x) => (y, z) { y = Sqrt(x) z = Neg(x) }",
        ["Sqrt", "Neg"],
    ),
    "half floats, which are loaded and stored": (
        "g (float16[9] x) => (y) { a = Sqrt(x) y = Neg(a) }",
        ["Sqrt", "Neg"],
    ),
}


@pytest.mark.parametrize(("source", "expected"), FUSED.values(), ids=FUSED)
def test_elementwise_groups_are_fused(source: str, expected: list[str]) -> None:
    assert groups(source) == expected


@pytest.mark.parametrize(("source", "expected"), APART.values(), ids=APART)
def test_other_instructions_stay_apart(source: str, expected: list[str]) -> None:
    found = groups(source)
    assert sorted(op for op in found if "::" not in op) == sorted(expected)


def test_a_group_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuse_elementwise, "MOST_PARTS", 2)
    source = "g (float[9] x) => (y) { a = Sqrt(x) b = Neg(a) c = Abs(b) y = Sqrt(c) }"
    assert groups(source) == ["Sqrt+Neg", "Abs+Sqrt"]
    monkeypatch.setattr(fuse_elementwise, "MOST_INPUTS", 2)
    source = "g (float[9] x, float[9] y, float[9] z) => (w) { a = Add(x, y) w = Add(a, z) }"
    assert groups(source) == ["Add", "Add"]


EVERYTHING = """g (float[4,7] x, float[7] s, float[4,7] w, int32[4,7] n, int32[7] d, uint8[4,7] u, float lo)
    => (float[4,7] r, float[4,7] c, int32[4,7] q, uint8[4,7] v, float[4,7] m, bool[4,7] t) {
    xx = Mul(x, x)
    ww = Mul(w, w)
    gap = Sub(xx, ww)
    r = Sqrt(gap)
    k = Clip(x, lo)
    e = Exp(k)
    h = Tanh(e)
    hs = Mul(h, s)
    c = Erf(hs)
    nd = Div(n, d)
    nm = Mod(nd, d)
    q = Add(nm, n)
    uu = Add(u, u)
    v = Mul(uu, u)
    less = Less(x, s)
    neg = Neg(x)
    pick = Where(less, neg, s)
    f = Cast<to=1>(n)
    m = Add(pick, f)
    nan = IsNaN(hs)
    no = Not(less)
    t = Or(nan, no)
}"""


def test_groups_compute_what_their_parts_do() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 7)).astype(np.float32)
    x[0, :4] = np.nan, np.inf, -np.inf, -0.0
    s = rng.standard_normal(7).astype(np.float32)
    n = rng.integers(-50, 50, (4, 7), np.int32)
    d = np.array([1, 2, 3, -1, -2, -3, 5], np.int32)
    u = rng.integers(0, 255, (4, 7)).astype(np.uint8)
    inputs = (x, s, x.copy(), n, d, u, np.array(-0.5, np.float32))
    plain = planned(program_of(EVERYTHING), "test")
    fused = planned(program_of(EVERYTHING), "test", (), (fuse_elementwise.fuse_elementwise,))
    assert len(fused.instructions) == 8 < len(plain.instructions)
    results = compile_program(program_of(EVERYTHING))(*inputs)
    with np.errstate(all="ignore"):
        expected = list(reference(*inputs))
    assert results is not None
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=2e-6)


def reference(x, s, w, n, d, u, lo):
    """In NumPy; equal squares leave exactly 0, whatever operations a CPU has."""
    from math import erf

    h = np.tanh(np.exp(np.maximum(x, lo)))
    quotient = np.trunc(n / d).astype(np.int32)
    yield np.sqrt(x * x - w * w)
    yield np.vectorize(erf)(h * s)
    yield np.mod(quotient, d) + n
    yield (u + u) * u
    yield np.where(x < s, -x, s) + n.astype(np.float32)
    yield np.isnan(h * s) | ~(x < s)
