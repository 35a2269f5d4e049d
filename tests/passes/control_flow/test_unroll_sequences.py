"""Tensors read from a sequence are replaced by the tensors put into it."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged

import smelt
from smelt.ir import text
from smelt.passes.control_flow.unroll_sequences import unroll_sequences
from smelt.runtime.onnxruntime import OnnxRuntime

X = np.arange(12, dtype=np.float32).reshape(4, 3)
MADE = "e = SequenceEmpty() a = SequenceInsert(e, x) n = Neg(x) b = SequenceInsert(a, n) "
MODELS = {
    "a part of equal parts": "k = Constant<value_int=3>() s = SplitToSequence(x, k) "
    "i = Constant<value_int=1>() y = SequenceAt(s, i)",
    "a part of given size": "k = Constant<value_ints=[1,2]>() s = SplitToSequence<axis=-1>(x, k) "
    "i = Constant<value_int=-1>() y = SequenceAt(s, i)",
    "a row": "s = SplitToSequence<axis=1>(x) i = Constant<value_int=2>() y = SequenceAt(s, i)",
    "a row without its dim": "s = SplitToSequence<axis=1,keepdims=0>(x) i = Constant<value_int=2>() "
    "y = SequenceAt(s, i)",
    "all joined": "n = Neg(x) s = SequenceConstruct(x, n, x) y = ConcatFromSequence<axis=1>(s)",
    "all stacked": "n = Neg(x) s = SequenceConstruct(x, n) "
    "y = ConcatFromSequence<axis=-1,new_axis=1>(s)",
    "inserted at the end": f"{MADE} y = ConcatFromSequence<axis=0>(b)",
    "inserted before the last": f"{MADE} i = Constant<value_int=-1>() t = Tanh(x) "
    "c = SequenceInsert(b, t, i) y = ConcatFromSequence<axis=0>(c)",
    "erased": f"{MADE} i = Constant<value_int=-2>() c = SequenceErase(b, i) "
    "y = ConcatFromSequence<axis=0>(c)",
    "the last erased": f"{MADE} c = SequenceErase(b) d = Identity(c) y = ConcatFromSequence<axis=0>(d)",
    "counted": f"{MADE} l = SequenceLength(b) f = Cast<to=1>(l) y = Mul(x, f)",
    "an element": "o = Optional(x) y = OptionalGetElement(o)",
    "whether there is one": "o = Optional(x) h = OptionalHasElement(o) f = Cast<to=1>(h) y = Mul(x, f)",
}


@pytest.mark.parametrize("name", MODELS)
def test_models_without_sequences_mean_the_same(name: str) -> None:
    body = MODELS[name].replace("y = ", "r = ")
    source = text.parse(f"g (float[4,3] x) => (float[A,B] y) {{ {body} y = Neg(r) }}", 18)
    if name in ("a row without its dim", "all stacked"):
        source.graph.outputs[0].shape = None
    optimized = smelt.optimize(source.clone())
    left = {node.op_type for node in optimized.graph}
    assert not [each for each in left if "Sequence" in each or "Optional" in each]
    for got, want in zip(OnnxRuntime(optimized)(X), OnnxRuntime(source)(X), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_part_is_a_slice() -> None:
    check_rewrite(
        unroll_sequences,
        "g (float[6,N] x) => (float[2,N] y) { k = Constant<value_int=2>() "
        "s = SplitToSequence(x, k) i = Constant<value_int=1>() y = SequenceAt(s, i) }",
        "g (float[6,N] x) => (float[2,N] y) { s = Constant<value_ints=[2]>() "
        "e = Constant<value_ints=[4]>() a = Constant<value_ints=[0]>() y = Slice(x, s, e, a) }",
    )


KEPT = {
    "a position that a caller gives": "g (float[6] x, int64 i) => (float[2] y) "
    "{ k = Constant<value_int=2>() s = SplitToSequence(x, k) y = SequenceAt(s, i) }",
    "as many parts as a caller's axis has": "g (float[N] x) => (float[2] y) "
    "{ k = Constant<value_int=2>() i = Constant<value_int=0>() s = SplitToSequence(x, k) y = SequenceAt(s, i) }",
    "parts that do not fill the axis": "g (bool c, float[6] x) => (float[2] y) { y = If(c) <"
    "then_branch = t () => (float[2] p) { k = Constant<value_ints=[2,3]>() i = Constant<value_int=0>() "
    "s = SplitToSequence(x, k) p = SequenceAt(s, i) }, else_branch = e () => (float[2] q) "
    "{ m = Constant<value_ints=[0]>() n = Constant<value_ints=[2]>() q = Slice(x, m, n) }> }",
    "a position beyond the end": "g (bool c, float[2] x) => (float[2] y) { y = If(c) <"
    "then_branch = t () => (float[2] p) { i = Constant<value_int=1>() s = SequenceConstruct(x) "
    "p = SequenceAt(s, i) }, else_branch = e () => (float[2] q) { q = Neg(x) }> }",
    "nothing to join": "g (float[2] x) => (float[2] y) "
    "{ s = SequenceConstruct(x) t = SequenceErase(s) y = ConcatFromSequence<axis=0>(t) }",
    "a sequence of a caller": "g (seq(float[2]) s) => (float[N] y) { y = ConcatFromSequence<axis=0>(s) }",
    "the length of a sequence of a caller": "g (seq(float[2]) s) => (int64 n) { n = SequenceLength(s) }",
    "a place that a caller gives": "g (float[2] a, int64 p) => (int64 n) "
    "{ s = SequenceConstruct(a) t = SequenceInsert(s, a, p) n = SequenceLength(t) }",
    "an optional of a caller": "g (optional(float[2]) o) => (float[2] y) { y = OptionalGetElement(o) }",
}


@pytest.mark.parametrize("name", KEPT)
def test_sequences_with_unknown_parts_or_positions_stay(name: str) -> None:
    check_unchanged(unroll_sequences, KEPT[name])
