"""The operators that ``runtime_accuracy`` measures, and what each should give in 80 bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import mpmath
import numpy as np

Wide: TypeAlias = "np.ndarray[Any, np.dtype[np.longdouble]]"


@dataclass(frozen=True)
class Function:
    """One node, on ``x`` and ``z``, and the function that it says, in ``np.longdouble``."""

    name: str
    node: str
    true: Callable[..., Wide]
    operands: int = 1
    opset: int = 20
    constants: str = ""


def erf(x: Wide) -> Wide:
    """The error function by mpmath: ``x`` is exact in it, the result good to 64 bits."""
    return _by_mpmath(mpmath.erf, x)


def upper(x: Wide) -> Wide:
    """The distribution function of the normal distribution: ``erfc(-x / sqrt(2)) / 2``."""
    return _by_mpmath(mpmath.ncdf, x)


def _by_mpmath(function: Callable[[Any], Any], x: Wide) -> Wide:
    with mpmath.workdps(30):
        flat = [_rounded(function, number) for number in x.ravel()]
    return np.array(flat, np.longdouble).reshape(x.shape)


def _rounded(function: Callable[[Any], Any], number: np.longdouble) -> np.longdouble:
    if not np.isfinite(number) or abs(number) > 1e4:
        return np.longdouble(float(function(float(number))))
    return np.longdouble(mpmath.nstr(function(mpmath.mpf(repr(number)[15:-2])), 25))


def sigmoid(x: Wide) -> Wide:
    return 1 / (1 + np.exp(-x))


def softplus(x: Wide) -> Wide:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gelu_tanh(x: Wide) -> Wide:
    inner = np.sqrt(2 / np.longdouble(np.pi)) * (x + np.longdouble("0.044715") * x**3)
    return x * sigmoid(2 * inner)


def elu(x: Wide, alpha: float = 1.0, gamma: float = 1.0) -> Wide:
    return np.where(x > 0, gamma * x, gamma * np.longdouble(alpha) * np.expm1(x))


def _plain(name: str, true: Callable[..., Wide], **facts: Any) -> Function:
    return Function(name, f"y = {name}(x)", true, **facts)


SELU = (float(np.float32(1.67326319217681884765625)), float(np.float32(1.05070102214813232421875)))

ELEMENTWISE = [
    *(
        _plain(name.capitalize(), getattr(np, f"arc{name[1:]}"))
        for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh")
    ),
    *(
        _plain(name.capitalize(), getattr(np, name))
        for name in ("cos", "cosh", "exp", "log", "sin", "sinh", "sqrt", "tan", "tanh")
    ),
    _plain("Reciprocal", lambda x: 1 / x),
    Function("Pow", "y = Pow(x, z)", np.power, operands=2),
    _plain("Erf", erf),
    _plain("Sigmoid", sigmoid),
    _plain("Softplus", softplus),
    _plain("Softsign", lambda x: x / (1 + np.abs(x))),
    _plain("Elu", elu),
    _plain("Celu", elu),
    _plain("Selu", lambda x: elu(x, *SELU)),
    _plain("Gelu", lambda x: x * upper(x)),
    Function("Gelu, tanh", 'y = Gelu<approximate="tanh">(x)', gelu_tanh),
    _plain("Mish", lambda x: x * np.tanh(softplus(x))),
    _plain("HardSigmoid", lambda x: np.clip(np.longdouble(np.float32(0.2)) * x + 0.5, 0, 1)),
    _plain("HardSwish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    _plain("Swish", lambda x: x * sigmoid(x), opset=24),
]


def log_sum(x: Wide) -> Wide:
    top = x.max(-1, keepdims=True)
    return top + np.log(np.exp(x - top).sum(-1, keepdims=True))


def normalized(x: Wide, mean: bool = True) -> Wide:
    centred = x - x.mean(-1, keepdims=True) if mean else x
    epsilon = np.longdouble(np.float32(1e-5))
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)


REDUCED = {
    "ReduceSum": lambda x: x.sum(-1, keepdims=True),
    "ReduceMean": lambda x: x.mean(-1, keepdims=True),
    "ReduceL2": lambda x: np.sqrt((x**2).sum(-1, keepdims=True)),
    "ReduceSumSquare": lambda x: (x**2).sum(-1, keepdims=True),
    "ReduceLogSum": lambda x: np.log(x.sum(-1, keepdims=True)),
    "ReduceLogSumExp": log_sum,
}
AXES = "<int64[1] axes = {-1}>"
NORMS = {
    "LayerNormalization": (17, "y = LayerNormalization(x, z)", lambda x, z: normalized(x)),
    "RMSNormalization": (23, "y = RMSNormalization(x, z)", lambda x, z: normalized(x, mean=False)),
}
GROUPS = "<int64[1] one = {1}, float[1] f = {1}, float[1] g = {0}>"
GROUP_NORMS = {
    "GroupNormalization": "n = GroupNormalization<num_groups=1>(u, s, b)",
    "InstanceNormalization": "n = InstanceNormalization(u, s, b)",
}
GROUPED = "u = Unsqueeze(x, one) s = CastLike(f, x) b = CastLike(g, x) {} y = Squeeze(n, one)"
"""Each row as a group, or a channel, of its own."""

EYE = (
    "n = Shape<start=1>(x) m = Concat<axis=0>(n, n) o = ConstantOfShape(m) e = CastLike(o, x)"
    " k = EyeLike(e)"
)
HEADS = "<int64[2] h = {0,1}, int64[1] w = {0}, int64[3] c = {0,1,3}, int64[2] r = {0,2}>"
ATTENTIONS = {
    "Attention": (
        f"{EYE} q4 = Unsqueeze(x, h) k4 = Unsqueeze(k, h) v4 = Unsqueeze(z, c)"
        " a = Attention<scale=1.0>(q4, k4, v4) y = Squeeze(a, h)"
    ),
    "com.microsoft.MultiHeadAttention": (
        f"{EYE} q3 = Unsqueeze(x, w) k3 = Unsqueeze(k, w) v3 = Unsqueeze(z, r)"
        " a = com.microsoft.MultiHeadAttention<num_heads=1, scale=1.0>(q3, k3, v3)"
        " y = Squeeze(a, w)"
    ),
}
"""The keys are the rows of the unit matrix, so each row of ``x`` has the scores of its query. ``z``
has the values, one for each key."""


def attended(x: Wide, z: Wide) -> Wide:
    return (np.exp(x - log_sum(x)) * z).sum(-1, keepdims=True)


SPREADS = {
    "64 near 0": (0.0, 1.0, 64),
    "64 to 100": (0.0, 30.0, 64),
    "64 around 1e4": (1e4, 1.0, 64),
    "64 near 1e19": (0.0, 1e19, 64),
    "64 near 1e38": (0.0, 1e38, 64),
    "4096 near 0": (0.0, 1.0, 4096),
}


OVER_ROWS: dict[str, Function] = {
    **{
        name: Function(name, f"y = {name}(x)", true)
        for name, true in {
            "Softmax": lambda x: np.exp(x - log_sum(x)),
            "LogSoftmax": lambda x: x - log_sum(x),
        }.items()
    },
    **{
        name: Function(name, f"y = {name}(x, axes)", true, constants=AXES)
        for name, true in REDUCED.items()
    },
    **{
        name: Function(name, node, true, operands=2, opset=opset)
        for name, (opset, node, true) in NORMS.items()
    },
    **{
        name: Function(name, GROUPED.format(node), normalized, opset=21, constants=GROUPS)
        for name, node in GROUP_NORMS.items()
    },
    **{
        name: Function(name, node, attended, operands=2, opset=23, constants=HEADS)
        for name, node in ATTENTIONS.items()
    },
}


def rows(function: Function, spread: tuple[float, float, int], dtype: type) -> list[np.ndarray]:
    """Eight rows of normal numbers around an offset, times a scale; then ones for the scale of a
    norm, or the values of an attention."""
    offset, scale, width = spread
    rng = np.random.default_rng(2)
    with np.errstate(over="ignore"):
        x = (offset + scale * rng.normal(size=(8, width))).astype(dtype)
    other = rng.normal(size=width) if function.true is attended else np.ones(width)
    return [x, other.astype(dtype)][: function.operands]
