"""Models of 16-bit floats are compared by the rounding that they have; real errors are still found."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from literals import literal

from smelt.check.compare import Comparison
from smelt.check.verification import Report, Trial
from smelt.check.verify import verify
from smelt.compiler import optimize
from smelt.errors import Mismatch
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference

WIDTH = 16
RNG = np.random.default_rng(3)
SCALE = 1 + RNG.standard_normal(WIDTH) / 8
BIAS = RNG.standard_normal(WIDTH) / 8
WEIGHTS = RNG.standard_normal((WIDTH, WIDTH)) / 4
NORM = (
    "m = ReduceMean(h, ax) d = Sub(h, m) q = Mul(d, d) v = ReduceMean(q, ax) u = Add(v, e)"
    " r = Sqrt(u) n = Div(d, r) a = Mul(n, s) z = Add(a, b)"
)
MLP = "p = MatMul(h, w) g = Add(p, b) t = Tanh(g) o = MatMul(t, w) z = Add(o, h)"
BODIES = {"LayerNorm": NORM, "MLP": MLP, "both": f"{MLP} {NORM}".replace("(h, ax)", "(k, ax)")
          .replace("z = Add(o, h)", "k = Add(o, h)").replace("Sub(h, m)", "Sub(k, m)")}  # fmt: skip


def layer(dtype: str, body: str, scale: np.ndarray = SCALE, io: str = "") -> ir.Model:
    """Return a layer that computes in ``dtype``, with inputs and outputs of type ``io``."""
    outer = io or dtype
    code = {"float": 1, "float16": 10, "bfloat16": 16}
    weights = {"s": scale, "b": BIAS, "w": WEIGHTS, "e": np.float32(1e-5)}
    constants = ", ".join(
        f"{dtype}{_shape(array)} {name} = {literal(dtype, *np.ravel(array))}"
        for name, array in weights.items()
    )
    return text.parse(
        f"g ({outer}[N,{WIDTH}] x) => ({outer}[N,{WIDTH}] y) <int64[1] ax = {{-1}}, {constants}>"
        f"{{ h = Cast<to = {code[dtype]}>(x) {body} y = Cast<to = {code[outer]}>(z) }}",
        20,
    )


def _shape(array: np.ndarray) -> str:
    return f"[{','.join(map(str, array.shape))}]" if array.shape else ""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("io", ["", "float"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_an_optimized_layer_is_the_same(body: str, io: str, dtype: str) -> None:
    source = layer(dtype, body, io=io)
    for when in ("final", "each"):
        optimized = optimize(source.clone(), verify=when)
    verify(source, optimized).check()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_layer_in_half_precision_is_the_same_as_in_float32(body: str, dtype: str) -> None:
    verify(layer("float", body), layer(dtype, body, io="float")).check()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("source", ["float", ""])
@pytest.mark.parametrize(
    ("old", "new"),
    [("Sqrt(u)", "Sqrt(v)"), ("Mul(n, s)", "Mul(n, n)"), ("Add(a, b)", "Add(a, s)"),
     ("v = ReduceMean(q, ax)", "v = ReduceMax(q, ax)"), ("Sub(h, m)", "Sub(m, h)")],
)  # fmt: skip
def test_another_formula_is_found(old: str, new: str, source: str, dtype: str) -> None:
    wrong = NORM.replace(old, new)
    assert wrong != NORM
    right = layer(source or dtype, NORM, io="float")
    assert not verify(right, layer(dtype, wrong, io="float")).ok


@pytest.mark.parametrize(("dtype", "part"), [("float16", 0.03), ("bfloat16", 0.4)])
def test_one_weight_that_is_off_is_found(dtype: str, part: float) -> None:
    other = SCALE.copy()
    other[5] *= 1 + part
    assert not verify(layer("float", NORM), layer(dtype, NORM, other, io="float")).ok
    assert not verify(layer(dtype, NORM), layer(dtype, NORM, other)).ok


def test_small_integers_in_half_precision_are_not_perturbed() -> None:
    """An index that is computed in 16 bits is exact; if it were perturbed, nothing would be
    determined.
    """
    place = (
        "g (int64[N] i, float16[N,4] x) => (int64[N] j, float16[N,4] y) <float16 one = "
        f"{literal('float16', 1)}> {{ f = Cast<to = 10>(i) g = Add(f, one) h = Sub(g, one)"
        " j = Cast<to = 7>(h) y = Neg(x) }}"
    ).replace("}}", "}")
    other = place.replace("h = Sub(g, one)", "h = Add(g, one)")
    assert not verify(text.parse(place, 20), text.parse(other, 20)).ok


def test_a_function_of_jax_is_called_with_arrays_of_jax() -> None:
    """NumPy computes means of bfloat16 in float32; the traced function does not."""
    import jax.numpy as jnp

    import smelt

    def normalized(x):  # type: ignore[no-untyped-def]
        mean = x.mean(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)

    model = smelt.trace(normalized, "bf16[N,8]")
    verify(normalized, model).check()


@pytest.mark.parametrize(("tiny", "same"), [(1e-8, True), (1e-5, False)])
def test_float16_has_no_number_between_zero_and_its_least(tiny: float, same: bool) -> None:
    """A float32 output that is cast from float16 may be 0 where the source has 1e-8."""
    exact = text.parse(f"g (float[4] x) => (float[4] y) <float t = {{{tiny}}}> {{ y = Mul(x, t) }}")
    half = text.parse(
        f"g (float[4] x) => (float[4] y) <float t = {{{tiny}}}, float o = {{0}}> "
        "{ p = Mul(x, t) q = Mul(p, o) h = Cast<to = 10>(q) y = Cast<to = 1>(h) }"
    )
    ShapeInference(half).infer_model()
    assert verify(exact, half, modes=("normal",)).ok is same


@pytest.mark.parametrize(
    ("in_half", "actual", "fix"),
    [
        (True, "nan", "compute in float32"),
        (True, "inf", "compute in float32"),
        (True, "2.0", "bisect"),
        (False, "nan", "bisect"),
    ],
)
def test_the_fix_of_an_overflow_in_16_bits_names_float32(
    in_half: bool, actual: str, fix: str
) -> None:
    wrong = Comparison("y", "float32[1]", failed=1, elements=1, expected="0.0", actual=actual)
    report = Report(("a", "b"), trials=[Trial({}, "far", 0, [wrong])], in_half=in_half)
    with pytest.raises(Mismatch) as caught:
        report.check()
    assert fix in caught.value.fix
