"""Activations, losses and norms as people spell them out: ONNX text, and the function in float64.

Each reads ``x``, rows of 16 numbers, and some ``t``, as many again, or labels ``l`` from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special


@dataclass(frozen=True)
class Formula:
    """A function of rows, and how exact each target has to be.

    ``unit`` is what the error is counted in units in the last place of: the ``result`` itself; the
    ``operand``, or 1 if that is smaller, where terms cancel; or the largest of the ``row``.
    ``ulp`` of them are allowed beyond twice the error of the source in ONNX Runtime.
    """

    body: str
    true: Callable[..., np.ndarray]
    unit: str = "result"
    ulp: int = 4


def _mean(x: np.ndarray) -> np.ndarray:
    return x.mean(-1, keepdims=True)


def _sum(x: np.ndarray) -> np.ndarray:
    return x.sum(-1, keepdims=True)


def _normalized(x: np.ndarray) -> np.ndarray:
    d = x - _mean(x)
    return d / np.sqrt(_mean(d * d) + 1e-5)


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def _huber(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    d = np.abs(x - t)
    return np.where(d <= 1, 0.5 * d * d, d - 0.5)


SIGMOID = "n = Neg(x) e = Exp(n) a = Add(e, one)"
TAIL = f"{SIGMOID} p = Div(one, a)"
STABLE_PLUS = "s = Abs(x) n = Neg(s) e = Exp(n) a = Add(one, e) o = Log(a) r = Relu(x)"
TOP = "m = ReduceMax(x, axis) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, axis)"
CENTRED = (
    "m = ReduceMean(x, axis) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, axis) w = Add(v, eps)"
)
CUBIC = "c = Pow(x, three) k = Mul(c, cubic) a = Add(x, k)"
EXP_TWICE = "g = Mul(x, two) e = Exp(g)"

ELEMENTWISE = {
    "sigmoid": Formula(f"{SIGMOID} y = Div(one, a)", special.expit),
    "sigmoid by exp": Formula("e = Exp(x) a = Add(e, one) y = Div(e, a)", special.expit),
    "sigmoid by tanh": Formula(
        "h = Mul(x, half) z = Tanh(h) u = Mul(z, half) y = Add(u, half)", special.expit, "operand"
    ),
    "log of sigmoid": Formula(f"{TAIL} y = Log(p)", special.log_expit),
    "one less sigmoid": Formula(f"{TAIL} y = Sub(one, p)", lambda x: special.expit(-x), "operand"),
    "inverse of sigmoid": Formula(f"{TAIL} y = Reciprocal(p)", lambda x: 1 + np.exp(-x)),
    "root of sigmoid": Formula(f"{TAIL} y = Sqrt(p)", lambda x: np.sqrt(special.expit(x))),
    "log sigmoid, stable": Formula(
        f"{STABLE_PLUS} i = Sub(r, x) b = Add(i, o) y = Neg(b)", special.log_expit, "operand"
    ),
    "cross entropy": Formula(
        f"{TAIL} f = Log(p) g = Sub(one, p) h = Log(g) i = Mul(l, f) k = Sub(one, l) "
        "j = Mul(k, h) b = Add(i, j) y = Neg(b)",
        lambda x, t, labels: _softplus(x) - labels * x,
        "operand",
    ),
    "cross entropy of logits": Formula(
        f"{STABLE_PLUS} i = Mul(x, l) j = Sub(r, i) y = Add(j, o)",
        lambda x, t, labels: _softplus(x) - labels * x,
        "operand",
    ),
    "focal loss": Formula(
        f"{TAIL} g = Sub(one, p) q = Mul(g, g) f = Log(p) h = Mul(q, f) y = Neg(h)",
        lambda x: -(special.expit(-x) ** 2) * special.log_expit(x),
        "operand",
    ),
    "softplus": Formula("e = Exp(x) a = Add(e, one) y = Log(a)", _softplus, "operand"),
    "softplus, stable": Formula(f"{STABLE_PLUS} y = Add(r, o)", _softplus, "operand"),
    "gelu": Formula(
        "z = Div(x, root) e = Erf(z) a = Add(e, one) h = Mul(x, half) y = Mul(h, a)",
        lambda x: x * special.ndtr(x),
        "operand",
    ),
    "gelu by erfc": Formula(
        "z = Mul(x, minus) e = smelt.Erfc(z) h = Mul(x, half) y = Mul(h, e)",
        lambda x: x * special.ndtr(x),
        "operand",
    ),
    "gelu by tanh": Formula(
        f"{CUBIC} i = Mul(a, gate) z = Tanh(i) b = Add(one, z) h = Mul(x, half) y = Mul(h, b)",
        _gelu_tanh,
        "operand",
    ),
    "gelu by sigmoid": Formula(
        "g = Mul(x, quick) s = Sigmoid(g) y = Mul(x, s)",
        lambda x: x * special.expit(np.float64(np.float32(1.702)) * x),
        "operand",
    ),
    "silu": Formula(f"{TAIL} y = Mul(x, p)", lambda x: x * special.expit(x), "operand"),
    "silu, divided": Formula(f"{SIGMOID} y = Div(x, a)", lambda x: x * special.expit(x), "operand"),
    "mish": Formula(
        "e = Exp(x) a = Add(e, one) o = Log(a) z = Tanh(o) y = Mul(x, z)",
        lambda x: x * np.tanh(_softplus(x)),
        "operand",
    ),
    "elu": Formula(
        "e = Exp(x) d = Sub(e, one) b = Greater(x, zero) y = Where(b, x, d)",
        lambda x: np.where(x > 0, x, np.expm1(x)),
        "operand",
    ),
    "selu": Formula(
        "e = Exp(x) d = Sub(e, one) f = Mul(d, alpha) b = Greater(x, zero) s = Where(b, x, f) "
        "y = Mul(s, scale)",
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
        "operand",
    ),
    "celu": Formula(
        "h = Mul(x, half) e = Exp(h) d = Sub(e, one) f = Mul(d, two) g = Min(f, zero) "
        "r = Relu(x) y = Add(r, g)",
        lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2)),
        "operand",
    ),
    "hard swish": Formula(
        "a = Add(x, three) c = Clip(a, zero, six) p = Mul(x, c) y = Div(p, six)",
        lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
        "operand",
    ),
    "leaky relu": Formula(
        "s = Mul(x, tenth) y = Max(x, s)", lambda x: np.where(x > 0, x, np.float32(0.1) * x)
    ),
    "softsign": Formula("s = Abs(x) a = Add(s, one) y = Div(x, a)", lambda x: x / (1 + np.abs(x))),
    "huber": Formula(
        "d = Sub(x, t) s = Abs(d) b = LessOrEqual(s, one) q = Mul(s, s) h = Mul(q, half) "
        "i = Sub(s, half) y = Where(b, h, i)",
        lambda x, t, labels: _huber(x, t),
        "operand",
    ),
    "tanh by exp": Formula(
        f"{EXP_TWICE} d = Sub(e, one) a = Add(e, one) y = Div(d, a)", np.tanh, "operand"
    ),
    "tanh by sigmoid": Formula(
        "g = Mul(x, two) s = Sigmoid(g) i = Mul(s, two) y = Sub(i, one)", np.tanh, "operand"
    ),
    "expm1": Formula("e = Exp(x) y = Sub(e, one)", np.expm1, "operand"),
    "log1p": Formula(
        "s = Abs(x) a = Add(s, one) y = Log(a)", lambda x: np.log1p(np.abs(x)), "operand"
    ),
    "sinh": Formula(
        "e = Exp(x) n = Neg(x) f = Exp(n) d = Sub(e, f) y = Mul(d, half)", np.sinh, "operand"
    ),
    "hypot": Formula(
        "q = Mul(x, x) u = Mul(t, t) a = Add(q, u) y = Sqrt(a)", lambda x, t, labels: np.hypot(x, t)
    ),
    "logaddexp": Formula(
        "m = Max(x, t) d = Sub(x, t) s = Abs(d) n = Neg(s) e = Exp(n) a = Add(e, one) o = Log(a) "
        "y = Add(m, o)",
        lambda x, t, labels: np.logaddexp(x, t),
        "operand",
    ),
    "inverse root": Formula(
        "s = Abs(x) a = Add(s, eps) r = Sqrt(a) y = Reciprocal(r)",
        lambda x: 1 / np.sqrt(np.abs(x) + np.float64(np.float32(1e-5))),
    ),
}

ROWS = {
    "softmax": Formula(f"{TOP} y = Div(e, s)", lambda x: special.softmax(x, -1), "row"),
    "softmax, unstable": Formula(
        "e = Exp(x) s = ReduceSum(e, axis) y = Div(e, s)", lambda x: special.softmax(x, -1), "row"
    ),
    "log softmax": Formula(
        f"{TOP} o = Log(s) y = Sub(d, o)", lambda x: special.log_softmax(x, -1), "row"
    ),
    "log of softmax": Formula(
        "p = Softmax(x) y = Log(p)", lambda x: special.log_softmax(x, -1), "row"
    ),
    "logsumexp": Formula(
        f"{TOP} o = Log(s) y = Add(o, m)", lambda x: special.logsumexp(x, -1, keepdims=True), "row"
    ),
    "layer norm": Formula(f"{CENTRED} r = Sqrt(w) y = Div(d, r)", _normalized, "row", 16),
    "layer norm, scaled": Formula(
        f"{CENTRED} r = Sqrt(w) i = Reciprocal(r) n = Mul(d, i) k = Mul(n, gains) y = Add(k, gains)",
        lambda x: _normalized(x) * GAINS + GAINS,
        "row",
        16,
    ),
    "rms norm": Formula(
        "q = Mul(x, x) v = ReduceMean(q, axis) w = Add(v, eps) r = Sqrt(w) n = Div(x, r) "
        "y = Mul(n, gains)",
        lambda x: x / np.sqrt(_mean(x * x) + 1e-5) * GAINS,
        "result",
        16,
    ),
    "l2 normalize": Formula(
        "q = Mul(x, x) v = ReduceSum(q, axis) r = Sqrt(v) c = Max(r, eps) y = Div(x, c)",
        lambda x: x / np.maximum(np.sqrt(_sum(x * x)), np.float64(np.float32(1e-5))),
        "result",
        16,
    ),
    "mean": Formula("s = ReduceSum(x, axis) y = Div(s, sixteen)", _mean, "row"),
    "kl divergence": Formula(
        f"{TOP} o = Log(s) i = Sub(d, o) p = Div(e, s) k = Mul(p, i) y = ReduceSum(k, axis)",
        lambda x: -special.entr(special.softmax(x, -1)).sum(-1, keepdims=True),
        "row",
    ),
}
GAINS = np.linspace(0.5, 2, 16).astype(np.float32)
CONSTANTS = {
    "zero": 0.0,
    "half": 0.5,
    "one": 1.0,
    "two": 2.0,
    "three": 3.0,
    "six": 6.0,
    "sixteen": 16.0,
    "tenth": 0.1,
    "eps": 1e-5,
    "root": 2**0.5,
    "minus": -(0.5**0.5),
    "cubic": 0.044715,
    "gate": (2 / np.pi) ** 0.5,
    "quick": 1.702,
    "alpha": 1.6732632423543772,
    "scale": 1.0507009873554805,
}
