"""A bias between quantized numbers that is no whole number of steps is not rounded to them."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import STRICT, Library, ops

X_SCALE, X_ZERO, Y_ZERO = np.float32(0.02531), 120, 5
FINE, COARSE = np.float32(0.00031), np.float32(0.02171)
"""Steps of the result that are smaller and larger than those of the sums."""

HEAD = (
    "g (float{x} x, float s, uint8 z, float t, int8 u, int8{w} w, float[{c}] ws{more}) => "
    "(float{y} y) { q0 = QuantizeLinear(x, s, z) x0 = DequantizeLinear(q0, s, z) "
)
TAIL = "q9 = QuantizeLinear(y0, t, u) y = DequantizeLinear(q9, t, u) }"
CONV = "w0 = DequantizeLinear<axis=0>(w, ws) y0 = Conv<pads=[1,1,1,1]GROUP>(x0, w0, b) "
FORMS = {
    "rows": ("[13,8]", "[8,20]", "[13,20]"),
    "one row": ("[1,8]", "[8,20]", "[1,20]"),
    "images": ("[1,4,7,11]", "[7,4,3,3]", "[1,7,7,11]"),
    "depthwise": ("[1,6,7,11]", "[6,1,3,3]", "[1,6,7,11]"),
}
BIASES = {
    "float": (", float[{c}] b", ""),
    "of its own scale": (", int32[{c}] bi, float[{c}] bs", "b = DequantizeLinear<axis=0>(bi, bs) "),
}


def shape_of(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.strip("[]").split(","))


def graph_of(form: str, bias: str) -> str:
    x, w, y = FORMS[form]
    is_image = len(shape_of(x)) == 4
    more, read = BIASES[bias]
    body = "w0 = DequantizeLinear<axis=1>(w, ws) p = MatMul(x0, w0) y0 = Add(p, b) "
    if is_image:
        body = CONV.replace("GROUP", ", group=6" if form == "depthwise" else "")
    text = HEAD.replace("{more}", more) + read + body + TAIL
    channels = shape_of(w)[0 if is_image else 1]
    for name, value in (("{x}", x), ("{w}", w), ("{y}", y), ("{c}", str(channels))):
        text = text.replace(name, value)
    return text


def values_of(form: str, bias: str, step: np.float32) -> dict[str, np.ndarray]:
    rng, shape = np.random.default_rng(len(form)), shape_of(FORMS[form][1])
    channels = shape[0 if len(shape) == 4 else 1]
    values = {
        "s": X_SCALE,
        "z": np.uint8(X_ZERO),
        "t": step,
        "u": np.int8(Y_ZERO),
        "w": rng.integers(-64, 65, shape).astype(np.int8),
        "ws": rng.uniform(0.02, 0.04, channels).astype(np.float32),
    }
    span = 60 * step
    if bias == "float":
        return values | {"b": (rng.uniform(-1, 1, channels) * span).astype(np.float32)}
    whole = rng.integers(-1000, 1000, channels).astype(np.int32)
    return values | {"bi": whole, "bs": (rng.uniform(0.5, 1, channels) * span / 1000).astype("f")}


def exact(form: str, values: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return the results in steps before they are rounded, in doubles."""
    codes = np.clip(np.rint(x / X_SCALE) + X_ZERO, 0, 255) - X_ZERO
    w = values["w"].astype(np.float64)
    bias = values["b"] if "b" in values else values["bi"] * values["bs"]
    if w.ndim == 2:
        return (codes @ w * (np.float64(X_SCALE) * values["ws"]) + bias) / np.float64(values["t"])
    padded = np.pad(codes, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    equation = "nchwij,cdij->nchw" if form == "depthwise" else "nchwij,ocij->nohw"
    sums = np.einsum(equation, seen, w)
    scales = (np.float64(X_SCALE) * values["ws"])[:, None, None]
    return (sums * scales + bias[:, None, None]) / np.float64(values["t"])


KINDS = (("float", FINE), ("float", COARSE), ("of its own scale", COARSE))
CASES = [(form, bias, step) for form in FORMS for bias, step in KINDS]


def name_of(form: str, bias: str, step: np.float32) -> str:
    return f"{form}, {bias}, {step}"


BUILDS = {
    "in vectors of this CPU": ("integers", (*STRICT, "-march=native")),
    "one sum at a time": ("integers", (*STRICT, "-DSUMS=1")),
    "in fixed point": ("fixed", STRICT),
}


@pytest.fixture(scope="module", params=BUILDS)
def build(request: pytest.FixtureRequest) -> tuple[Library, bool]:
    """All cases in one library, and whether it computes in fixed point."""
    graphs = {name_of(*case): graph_of(*case[:2]) for case in CASES}
    values = {name_of(*case): values_of(*case) for case in CASES}
    quantized, flags = BUILDS[request.param]
    return Library(graphs, values=values, quantized=quantized, flags=flags), quantized == "fixed"


@pytest.mark.parametrize(("form", "bias", "step"), CASES)
def test_no_result_is_a_step_off(
    build: tuple[Library, bool], form: str, bias: str, step: np.float32
) -> None:
    """Fixed points round twice, so they may be a step off."""
    library, is_fixed = build
    name, values = name_of(form, bias, step), values_of(form, bias, step)
    assert any(op.startswith("QLinear") for op in ops(library.models[name].artifact))
    for seed in range(6):
        shape = shape_of(FORMS[form][0])
        x = np.random.default_rng(seed).normal(scale=0.02, size=shape).astype(np.float32)
        (got,) = library.run(name, [x])
        steps = np.rint(got / step) + Y_ZERO
        wanted = np.clip(exact(form, values, x) + Y_ZERO, -128, 127)
        assert np.abs(steps - wanted).max() <= (1.001 if is_fixed else 0.501)
