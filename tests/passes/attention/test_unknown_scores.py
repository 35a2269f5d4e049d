"""A Softmax of scores that no form of attention has is a near miss."""

from __future__ import annotations

import pytest
from rewrites import run_pass

from smelt.ir import text
from smelt.passes.attention.fuse_attention import fuse_attention

ENDS = "p = Softmax<axis=-1>({}) y = MatMul(p, v)"
TOLD = {
    "scores times a mask (OpenAI GPT)": (
        "s = MatMul(q, t) a = Mul(s, m) b = Sub(one, m) c = Mul(b, low) d = Add(a, c)",
        "d",
        "not constant",
    ),
    "scores over a computed number": ("s = MatMul(q, t) d = Div(s, m)", "d", "not constant"),
    "a number over scores": ("s = MatMul(q, t) e = Exp(s) d = Div(one, e)", "d", "Exp stands"),
    "an operator of no attention": ("s = MatMul(q, t) d = Relu(s)", "d", "Relu stands"),
    "a mask minus scores": ("s = MatMul(q, t) d = Sub(m, s)", "d", "Sub stands"),
    "four biases": (
        "s = MatMul(q, t) a = Add(s, m) b = Add(a, m) c = Add(b, m) d = Add(c, m)",
        "d",
        "more than 3 values",
    ),
    "a mask subtracted after three biases": (
        "s = MatMul(q, t) a = Add(s, m) b = Add(a, m) c = Add(b, m) d = Sub(c, m)",
        "d",
        "more than 3 values",
    ),
}
SILENT = {
    "no product of queries and keys": ("d = Neg(q)", "d"),
    "a mask subtracted after two biases, whose own rule tells": (
        "s = MatMul(q, t) a = Add(s, m) b = Add(a, m) d = Sub(b, m)",
        "d",
    ),
    "a known form, whose own rule tells": ("s = MatMul(q, t) a = Mul(s, one) d = Add(a, m)", "d"),
}


def misses(body: str, scores: str) -> dict[str, str]:
    """Return the reasons of the rules of ``fuse_attention`` by rule."""
    graph = (
        "g (float[N,2,5,5] q, float[N,2,5,5] t, float[N,2,5,6] v, float[N,1,1,5] m) => "
        "(float[N,2,5,6] y) <float one = {1}, float low = {-10000}> "
        f"{{ {body} {ENDS.format(scores)} }}"
    )
    stats = run_pass(fuse_attention, text.parse(graph, 23))
    return dict(stats.missed.keys())


@pytest.mark.parametrize("name", TOLD)
def test_the_first_operator_of_no_known_form_is_told(name) -> None:
    body, scores, why = TOLD[name]
    assert why in misses(body, scores)["unknown_scores"]


@pytest.mark.parametrize("name", SILENT)
def test_other_softmaxes_are_not_told_here(name) -> None:
    assert "unknown_scores" not in misses(*SILENT[name])
