"""Each activation pass keeps its declared error over all values of each supported type."""

from __future__ import annotations

import numpy as np
import pytest
from literals import literal
from rewrites import run_pass

from smelt.ir import text
from smelt.ir.floats import float_info, spacing, ulp_distance
from smelt.passes.registry import find_pass
from smelt.runtime.onnxruntime import OnnxRuntime

NUMBERS = {
    "half": 0.5,
    "one": 1,
    "two": 2,
    "three": 3,
    "six": 6,
    "zero": 0,
    "tenth": 0.1,
    "root": 2**0.5,
    "inverse": 0.5**0.5,
    "minus": -(0.5**0.5),
    "cubic": 0.044715,
    "gate": (2 / np.pi) ** 0.5,
    "twice": 2 * (2 / np.pi) ** 0.5,
    "quick": 1.702,
}
HALVED = "p = Mul(x, g) y = Mul(p, half)"
CUBE = "c = Pow(x, three) k = Mul(c, cubic) a = Add(x, k)"
CASES = {
    "sigmoid": (
        "fuse-sigmoid",
        "n = Neg(x) e = Exp(n) d = Add(e, one) r = Div(one, d) y = Mul(r, x)",
    ),
    "gelu": ("fuse-gelu-exact", f"z = Div(x, root) e = Erf(z) g = Add(e, one) {HALVED}"),
    "gelu of half": (
        "fuse-gelu-exact",
        "z = Mul(x, inverse) e = Erf(z) g = Add(e, one) h = Mul(g, half) y = Mul(x, h)",
    ),
    "gelu by erfc": ("fuse-gelu-exact", f"z = Mul(x, minus) g = smelt.Erfc(z) {HALVED}"),
    "gelu by tanh": (
        "fuse-gelu-tanh-approximation",
        f"{CUBE} u = Mul(a, gate) t = Tanh(u) g = Add(t, one) {HALVED}",
    ),
    "gelu by tanh, as a sigmoid": (
        "fuse-gelu-tanh-approximation",
        f"{CUBE} u = Mul(a, twice) t = Sigmoid(u) y = Mul(x, t)",
    ),
    "hard swish": (
        "fuse-hard-swish",
        "v = Add(x, three) t = Clip(v, zero, six) u = Mul(x, t) y = Div(u, six)",
    ),
    "swish": ("fuse-swish", "t = Sigmoid(x) y = Mul(x, t)"),
    "scaled swish": (
        "fuse-gelu-sigmoid-approximation",
        "w = Mul(x, quick) t = Sigmoid(w) y = Mul(x, t)",
    ),
    "leaky relu": ("fuse-leaky-relu", "w = Mul(x, tenth) y = Max(x, w)"),
}
TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16}
KEPT = {
    *((case, "double") for case in CASES if case not in ("sigmoid", "swish")),
    ("hard swish", "float16"),
}
"""What ONNX or ONNX Runtime has no such operator for, so that the pass does not fuse it."""


def numbers(dtype: type) -> np.ndarray:
    """Return numbers of both signs and all magnitudes, dense up to 130."""
    rng, info = np.random.default_rng(0), float_info(np.dtype(dtype))
    ends = np.log(float(info.smallest_subnormal)), np.log(float(info.max))
    near = rng.uniform(0, 130, 9000) * rng.choice([1, 0.1, 0.01], 9000)
    x = np.concatenate([np.exp(rng.uniform(*ends, 1000)), near, [0.0, 0.13, float(info.max)]])
    with np.errstate(over="ignore"):
        x = np.minimum(x, float(info.max)).astype(dtype)
    return np.concatenate([-x, x])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("case", CASES)
def test_declared_error(case: str, kind: str) -> None:
    """The absolute error is in ulp of the operand or of 1, the relative error in ulp of the
    result."""
    name, body = CASES[case]
    constants = ", ".join(f"{kind} {n} = {literal(kind, v)}" for n, v in NUMBERS.items())
    graph = f"g ({kind}[N] x) => ({kind}[N] y) <{constants}> {{ {body} }}"
    source, model = (text.parse(graph, 24, smelt=1) for _ in range(2))
    pass_ = find_pass(name)
    stats = run_pass(pass_, model)
    assert bool(stats.rewrites) == ((case, kind) not in KEPT)
    x = numbers(TYPES[kind])
    before, after = (OnnxRuntime(each)(x)[0] for each in (source, model))
    finite = np.isfinite(before)
    assert np.isfinite(after[finite]).all()
    wide, others = before[finite].astype(np.float64), after[finite].astype(np.float64)
    size = np.maximum(np.abs(x[finite].astype(np.float64)), 1)
    declared = pass_.exactness_of(stats)
    assert (np.abs(wide - others) <= declared.ulp * spacing(size, x.dtype)).all()
    if declared.relative:
        assert ulp_distance(before[finite], after[finite]).max() <= declared.relative
