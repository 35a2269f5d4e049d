"""Softmax and LogSoftmax are fused from their arithmetic."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.attention.fuse_softmax import fuse_softmax

G = "g (float[B,3,4] x) => (float[B,3,4] y) <int64[1] a = {2}, int64[1] b = {1}, float inf = {-inf}>"
KEEP = "m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) y = Div(e, s)"
FUSED = {
    "kept dims": KEEP,
    "squeezed and restored": (
        "m = ReduceMax<keepdims=0>(x, a) u = Unsqueeze(m, a) d = Sub(x, u) e = Exp(d) "
        "s = ReduceSum<keepdims=0>(e, a) v = Unsqueeze(s, a) y = Div(e, v)"
    ),
    "guarded as JAX does": (
        "m = ReduceMax<keepdims=0>(x, a) g = Max(inf, m) u = Unsqueeze(g, a) d = Sub(x, u) e = Exp(d) "
        "s = ReduceSum<keepdims=0>(e, a) v = Unsqueeze(s, a) y = Div(e, v)"
    ),
    "guarded against runtimes that drop NaN": KEEP.replace(
        "d = Sub(x, m)",
        "q = ReduceSumSquare(x, a) n = IsNaN(q) w = Where(n, q, m) d = Sub(x, w)",
    ),
}


@pytest.mark.parametrize("body", FUSED.values(), ids=FUSED.keys())
def test_fuses(body: str) -> None:
    check_rewrite(
        fuse_softmax, f"{G} {{ {body} }}", f"{G} {{ y = Softmax<axis=2>(x) }}", modes=("normal",)
    )


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [2, -1])
def test_a_maximum_that_is_taken_away_before(kind: str, axis: int) -> None:
    end = f"y = {kind}<axis={axis}>"
    squeezed = "n = ReduceMax<keepdims=0>(x, a) m = Unsqueeze(n, a)"
    for largest in ("m = ReduceMax(x, a)", squeezed):
        source = f"{G} {{ {largest} d = Sub(x, m) {end}(d) }}"
        check_rewrite(fuse_softmax, source, f"{G} {{ {end}(x) }}")


@pytest.mark.parametrize(
    "body",
    [
        "m = ReduceMax(x, b) d = Sub(x, m) y = Softmax<axis=2>(d)",
        "m = ReduceMax(x) d = Sub(x, m) y = Softmax<axis=2>(d)",
        "m = ReduceMin(x, a) d = Sub(x, m) y = Softmax<axis=2>(d)",
        "m = ReduceMax(x, a) d = Sub(m, x) y = Softmax<axis=2>(d)",
        "n = Neg(x) m = ReduceMax(n, a) d = Sub(x, m) y = Softmax<axis=2>(d)",
    ],
)
def test_other_subtractions_stay(body: str) -> None:
    check_unchanged(fuse_softmax, f"{G} {{ {body} }}")


def test_another_axis() -> None:
    body = KEEP.replace("(x, a)", "(x, b)").replace("(e, a)", "(e, b)")
    check_rewrite(
        fuse_softmax, f"{G} {{ {body} }}", f"{G} {{ y = Softmax<axis=1>(x) }}", modes=("normal",)
    )


LOGS = {
    "kept dims": KEEP.replace("y = Div(e, s)", "l = Log(s) y = Sub(d, l)"),
    "restored after the logarithm": (
        "m = ReduceMax<keepdims=0>(x, a) u = Unsqueeze(m, a) d = Sub(x, u) e = Exp(d) "
        "s = ReduceSum<keepdims=0>(e, a) l = Log(s) v = Unsqueeze(l, a) y = Sub(d, v)"
    ),
}


@pytest.mark.parametrize("body", LOGS.values(), ids=LOGS.keys())
def test_the_logarithm(body: str) -> None:
    check_rewrite(
        fuse_softmax, f"{G} {{ {body} }}", f"{G} {{ y = LogSoftmax<axis=2>(x) }}", modes=("normal",)
    )


WIDENED = (
    "m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) c = Cast<to={wide}>(e) s = ReduceSum(c, a) "
    "n = Cast<to=10>(s) y = Div(e, n)"
)
HALF = G.replace("float[B,3,4]", "float16[B,3,4]")


RESTORED = WIDENED.replace("ReduceSum(", "ReduceSum<keepdims=0>(").replace(
    "n = Cast<to=10>(s)", "v = Unsqueeze(s, a) n = Cast<to=10>(v)"
)


@pytest.mark.parametrize("body", [WIDENED, RESTORED], ids=["kept dims", "restored"])
def test_half_floats_summed_in_single_precision(body: str) -> None:
    check_rewrite(
        fuse_softmax,
        f"{HALF} {{ {body.format(wide=1)} }}",
        f"{HALF} {{ y = Softmax<axis=2>(x) }}",
        modes=("normal",),
    )


def test_keeps_sums_of_rounded_terms() -> None:
    check_unchanged(fuse_softmax, f"{HALF} {{ {WIDENED.format(wide=6)} }}")


def test_keeps_the_logarithm_for_doubles() -> None:
    check_unchanged(fuse_softmax, f"{G} {{ {LOGS['kept dims']} }}".replace("float[", "double["))


def test_the_leading_axis_needs_no_restoring() -> None:
    graph = "g (float[3,4] x) => (float[3,4] y) <int64[1] a = {0}>"
    body = KEEP.replace("ReduceMax(", "ReduceMax<keepdims=0>(")
    body = body.replace("ReduceSum(", "ReduceSum<keepdims=0>(")
    check_rewrite(
        fuse_softmax,
        f"{graph} {{ {body} }}",
        f"{graph} {{ y = Softmax<axis=0>(x) }}",
        modes=("normal",),
    )


KEPT = {
    "a guard over another axis": KEEP.replace(
        "d = Sub(x, m)",
        "q = ReduceSumSquare(x, b) n = IsNaN(q) w = Where(n, q, m) d = Sub(x, w)",
    ),
    "another axis in the sum": KEEP.replace("(e, a)", "(e, b)"),
    "the maximum of something else": KEEP.replace("Sub(x, m)", "Sub(m, x)"),
    "upside down": KEEP.replace("Div(e, s)", "Div(s, e)"),
    "all axes": KEEP.replace("ReduceSum(e, a)", "ReduceSum(e)"),
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_keeps(body: str) -> None:
    check_unchanged(fuse_softmax, f"{G} {{ {body} }}")


def test_keeps_what_has_no_known_rank() -> None:
    check_unchanged(fuse_softmax, f"{G.replace('float[B,3,4]', 'float[]')} {{ {KEEP} }}")


def test_keeps_a_sum_that_is_an_output() -> None:
    graph = G.replace("(float[B,3,4] y)", "(float[B,3,4] y, float[B,3,1] s)")
    check_unchanged(fuse_softmax, f"{graph} {{ {KEEP} }}")
