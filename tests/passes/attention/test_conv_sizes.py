"""Attention over the windows of a convolution, as in speech models."""

from __future__ import annotations

import numpy as np
import pytest

from smelt import optimize
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.passes.attention.fuse_attention import fuse_attention
from smelt.runtime.runner import run

CONSTANTS = (
    "int64[1] one = {1}, int64[1] zero = {0}, int64[1] two = {2}, int64[1] end = {9999}, "
    "float[4,1,4] w = {1,2,3,4,4,3,2,1,1,0,1,0,0,1,0,1}"
)
CONV = "c = Conv<strides=[2]>(x, w)"
POOL = "d = MaxPool<kernel_shape=[4],strides=[2]>(x) c = Concat<axis=1>(d, d, d, d)"


def speech(windows: str, outputs: str = "", more: str = "", rows: str = "q") -> str:
    """Return one head of size four over windows of four samples with stride two."""
    return (
        f"g (float[B,1,N] x) => (float[?,?,?,?] y{outputs}) <{CONSTANTS}> {{ {windows} "
        f"t = Transpose<perm=[0,2,1]>(c) q = Unsqueeze(t, one) {more} "
        f"k = Transpose<perm=[0,1,3,2]>({rows}) s = MatMul({rows}, k) p = Softmax(s) "
        f"y = MatMul(p, {rows}) }}"
    )


def is_fused(graph: str) -> bool:
    model = optimize(text.parse(graph, 23), pipeline="fuse-attention")
    return "Attention" in {node.op_type for node in model.graph}


def sound(samples: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, 1, samples)).astype(np.float32)


def test_windows_of_a_convolution() -> None:
    before = text.parse(speech(CONV), 23)
    after = optimize(before, pipeline="fuse-attention")
    assert "Attention" in {node.op_type for node in after.graph}
    for samples in (4, 5, 17):
        given = [sound(samples)]
        np.testing.assert_allclose(run(after, given)[0], run(before, given)[0], atol=1e-6)


@pytest.mark.parametrize("samples", [1, 3])
def test_a_sound_without_a_window_has_no_run_before_and_after(samples: int) -> None:
    before = text.parse(speech(CONV), 23)
    for model in (before, optimize(before, pipeline="fuse-attention")):
        with pytest.raises(SmeltError):
            run(model, [sound(samples)])


KEPT = {
    "of a pool, which may leave none": speech(POOL),
    "one window less": speech(CONV, more="r = Slice(q, one, end, two)", rows="r"),
    "of a convolution that nothing reads": speech(f"unread = Conv<strides=[2]>(x, w) {POOL}"),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT)
def test_sizes_that_may_be_0_stay(graph: str) -> None:
    assert not is_fused(graph)


def test_of_a_convolution_beside() -> None:
    assert is_fused(speech(f"z = Conv<strides=[2]>(x, w) {POOL}", outputs=", float[?,?,?] z"))


def test_the_page_mentions_conv_sizes() -> None:
    assert "sizes after a Conv" in fuse_attention.page
