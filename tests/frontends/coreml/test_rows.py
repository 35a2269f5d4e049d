"""MIL operators that compute numbers: read and run, they agree with NumPy."""

from __future__ import annotations

from math import erf, log, sqrt
from typing import Any

import numpy as np
import pytest
from frontends.coreml.rows import F, I, Row, Rows, f, i

ROWS = Rows()
row = ROWS.add
X, Y = f(2, 3), f(2, 3)
UNIT = f(2, 3, low=-0.9, high=0.9)
POSITIVE = f(2, 3, low=0.1, high=3)
TIES = np.array([-2.5, -0.5, 0.5, 1.5, 2.5, -0.0], F)

for name, reference, x in [
    ("abs", np.abs, X),
    ("abs", np.abs, i(4)),
    ("acos", np.arccos, UNIT),
    ("asin", np.arcsin, UNIT),
    ("atan", np.arctan, X),
    ("atanh", np.arctanh, UNIT),
    ("ceil", np.ceil, X),
    ("cos", np.cos, X),
    ("cosh", np.cosh, X),
    ("erf", np.vectorize(erf, otypes=[F]), X),
    ("exp", np.exp, X),
    ("exp2", np.exp2, X),
    ("floor", np.floor, X),
    ("identity", np.array, X),
    ("logical_not", np.logical_not, X > 0),
    ("relu", lambda x: np.maximum(x, 0), X),
    ("relu6", lambda x: np.clip(x, 0, 6), 5 * X),
    ("round", np.round, TIES),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), X),
    ("sign", np.sign, TIES),
    ("silu", lambda x: x / (1 + np.exp(-x)), X),
    ("sin", np.sin, X),
    ("sinh", np.sinh, X),
    ("softplus", lambda x: np.log1p(np.exp(x)), X),
    ("softsign", lambda x: x / (1 + np.abs(x)), X),
    ("sqrt", np.sqrt, POSITIVE),
    ("square", np.square, X),
    ("square", np.square, i(4)),
    ("tan", np.tan, UNIT),
    ("tanh", np.tanh, X),
]:
    row(name, {"x": x}, reference)

# Epsilons: the documented defaults, and 0.
row("inverse", {"x": np.array([2, -4, 0], F)}, lambda x: 1 / (x + F(1e-4)))
row("inverse", {"x": X}, lambda x: 1 / x, epsilon=0.0)
row("log", {"x": np.array([0, 1, 3], F)}, [log(1.401298464324817e-45), 0, log(3)])
row("log", {"x": np.array([0, 1], F)}, [-np.inf, 0], epsilon=0.0)
row("rsqrt", {"x": np.array([0, 4], F)}, [1e6, 0.5])
row("rsqrt", {"x": POSITIVE}, lambda x: 1 / np.sqrt(x + F(0.5)), epsilon=0.5)

WIDE, THIN = i(2, 3), i(3, low=1)
SIGNED = np.array([-7, 7, -7, 7, 6, 0, -(2**31)], I)
DIVISOR = np.array([3, -3, -3, 3, 3, 5, 3], I)
for name, reference in [
    ("add", np.add),
    ("sub", np.subtract),
    ("mul", np.multiply),
    ("maximum", np.maximum),
    ("minimum", np.minimum),
    ("equal", np.equal),
    ("not_equal", np.not_equal),
    ("greater", np.greater),
    ("greater_equal", np.greater_equal),
    ("less", np.less),
    ("less_equal", np.less_equal),
]:
    row(name, {"x": X, "y": Y}, reference)
    row(name, {"x": WIDE, "y": THIN}, reference)
row("real_div", {"x": X, "y": POSITIVE}, np.divide)
row("real_div", {"x": SIGNED, "y": DIVISOR}, lambda x, y: np.trunc(x / y).astype(I))
row("floor_div", {"x": SIGNED, "y": DIVISOR}, np.floor_divide)
row("floor_div", {"x": X, "y": POSITIVE}, lambda x, y: np.floor(x / y))
row("mod", {"x": SIGNED, "y": DIVISOR}, np.mod)
SMALL = np.array([1e-30, -1e-30, 5.5, -5.5, 4, -4], F)
row("mod", {"x": SMALL, "y": np.array([-1, 1, -2, 2, 2, -2], F)}, np.mod)
row("pow", {"x": POSITIVE, "y": Y}, np.power)
for name, reference in [
    ("logical_and", np.logical_and),
    ("logical_or", np.logical_or),
    ("logical_xor", np.logical_xor),
]:
    row(name, {"x": X > 0, "y": Y > 0}, reference)
row("clip", {"x": X}, lambda x: np.clip(x, -0.5, 0.75), alpha=-0.5, beta=0.75)
row("threshold", {"x": X}, lambda x: np.maximum(x, 0.3), alpha=F(0.3))
row("select", {"cond": X > 0, "a": X, "b": Y}, np.where)
row("select", {"cond": X > 0}, lambda c: np.argwhere(c).astype(I), ios=15)
for word, dtype in [("int32", I), ("bool", np.bool_), ("fp16", np.float16), ("uint8", np.uint8)]:
    row("cast", {"x": POSITIVE}, lambda x, dtype=dtype: x.astype(dtype), dtype=word)

# Activations.
A, B = 0.3, 1.7
IMAGE = f(2, 3, 4, 5)
BY_CHANNEL = np.array([0.1, -0.2, 2], F)
COLUMN = BY_CHANNEL[:, None, None]
for name, reference, numbers in [
    ("clamped_relu", lambda x: np.minimum(np.where(x >= 0, x, A * x), B), {"alpha": A, "beta": B}),
    ("elu", lambda x: np.where(x > 0, x, A * np.expm1(x)), {"alpha": A}),
    ("leaky_relu", lambda x: np.where(x >= 0, x, A * x), {"alpha": A}),
    ("linear_activation", lambda x: A * x + B, {"alpha": A, "beta": B}),
    ("scaled_tanh", lambda x: A * np.tanh(B * x), {"alpha": A, "beta": B}),
    ("sigmoid_hard", lambda x: np.clip(A * x + B, 0, 1), {"alpha": A, "beta": B}),
]:
    row(name, {"x": X}, reference, **numbers)
row("thresholded_relu", {"x": np.array([0.4, 0.5, 0.6], F)}, [0, 0.5, 0.6], alpha=0.5)
row("prelu", {"x": IMAGE}, lambda x: np.where(x > 0, x, COLUMN * x), alpha=BY_CHANNEL)
row(
    "softplus_parametric",
    {"x": IMAGE},
    lambda x: COLUMN * np.log1p(np.exp(2 * COLUMN * x)),
    alpha=BY_CHANNEL,
    beta=2 * BY_CHANNEL,
)
row("gelu", {"x": X}, lambda x: x * (1 + np.vectorize(erf)(x / sqrt(2))) / 2)
row(
    "gelu",
    {"x": X},
    lambda x: x * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    mode="TANH_APPROXIMATION",
)
row("gelu", {"x": X}, lambda x: x / (1 + np.exp(-1.702 * x)), mode="SIGMOID_APPROXIMATION")


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Softmax along an axis."""
    power = np.exp(x - x.max(axis, keepdims=True))
    return power / power.sum(axis, keepdims=True)


row("softmax", {"x": X}, softmax)
row("softmax", {"x": X}, lambda x: softmax(x, 0), axis=0)

# Reductions: all axes by default, and dims are dropped by default.
for name, reduce in [
    ("reduce_l1_norm", lambda x, a, k: np.abs(x).sum(a, keepdims=k)),
    ("reduce_l2_norm", lambda x, a, k: np.sqrt((x * x).sum(a, keepdims=k))),
    ("reduce_log_sum", lambda x, a, k: np.log(x.sum(a, keepdims=k))),
    ("reduce_log_sum_exp", lambda x, a, k: np.log(np.exp(x).sum(a, keepdims=k))),
    ("reduce_max", lambda x, a, k: x.max(a, keepdims=k)),
    ("reduce_mean", lambda x, a, k: x.mean(a, keepdims=k)),
    ("reduce_min", lambda x, a, k: x.min(a, keepdims=k)),
    ("reduce_prod", lambda x, a, k: x.prod(a, keepdims=k)),
    ("reduce_sum", lambda x, a, k: x.sum(a, keepdims=k)),
    ("reduce_sum_square", lambda x, a, k: (x * x).sum(a, keepdims=k)),
]:
    row(name, {"x": POSITIVE}, lambda x, r=reduce: r(x, None, False))
    row(name, {"x": POSITIVE}, lambda x, r=reduce: r(x, (-1,), True), axes=[-1], keep_dims=True)
row("reduce_argmax", {"x": X}, lambda x: x.argmax(-1).astype(I))
row("reduce_argmin", {"x": X}, lambda x: x.argmin(0)[None].astype(I), axis=0, keep_dims=True)
row("reduce_argmax", {"x": X}, lambda x: x.argmax(-1).astype(np.uint16), output_dtype="uint16")
row("argsort", {"x": X}, lambda x: np.argsort(-x).astype(I))
row("argsort", {"x": X}, lambda x: np.argsort(x, 0).astype(I), axis=0, ascending=True)
row(
    "topk",
    {"x": X},
    lambda x: -np.sort(-x)[:, :2],
    lambda x: np.argsort(-x)[:, :2].astype(I),
    k=2,
)
row("topk", {"x": X}, lambda x: np.sort(x, 0), k=-1, axis=0, ascending=True, return_indices=False)
row("cumsum", {"x": X}, lambda x: x.cumsum(0))
row(
    "cumsum",
    {"x": X},
    lambda x: x[:, ::-1].cumsum(1)[:, ::-1] - x,
    axis=1,
    exclusive=True,
    reverse=True,
)

# Products.
W, BIAS = f(4, 3), f(4)
row("linear", {"x": X}, lambda x: x @ W.T + BIAS, weight=W, bias=BIAS)
row("linear", {"x": f(2, 5, 3)}, lambda x: x @ W.T + BIAS, weight=W, bias=BIAS)
row("linear", {"x": f(3)}, lambda x: x @ W.T, weight=W)
row("matmul", {"x": X, "y": f(3, 4)}, np.matmul)
row(
    "matmul",
    {"x": f(2, 3, 4), "y": f(5, 3)},
    lambda x, y: x.swapaxes(1, 2) @ y.T,
    transpose_x=True,
    transpose_y=True,
)
EQUATION = "nchw,nwhu->nchu"
row(
    "einsum",
    {"a": f(2, 3, 4, 5), "b": f(2, 5, 4, 6)},
    lambda a, b: np.einsum(EQUATION, a, b),
    values=["%a", "%b"],
    equation=EQUATION,
)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: Any = 0) -> np.ndarray:
    """Scaled dot product attention; a boolean mask excludes elements."""
    mask = np.where(mask, 0, -np.inf) if np.asarray(mask).dtype == bool else mask
    scores = q @ k.swapaxes(-1, -2) / sqrt(q.shape[-1]) + mask
    return (softmax(scores) @ v).astype(F)


for lead in ((2,), (2, 2)):
    parts = {
        "query": f(*lead, 3, 4),
        "key": f(*lead, 5, 4),
        "value": f(*lead, 5, 2),
        "attn_mask": f(3, 5),
    }
    row("scaled_dot_product_attention", parts, attention, ios=18)
    masked = {**parts, "attn_mask": np.tri(3, 5, 1, bool)}
    row("scaled_dot_product_attention", masked, attention, ios=18)


@pytest.mark.parametrize("row_", ROWS, ids=ROWS.ids())
def test_it_computes_what_numpy_computes(row_: Row) -> None:
    row_.check()
