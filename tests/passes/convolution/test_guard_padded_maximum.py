"""ONNX Runtime does not fold zeros around an image into the padding of a MaxPool."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged

import smelt
from smelt.ir import text
from smelt.passes.convolution.guard_padded_maximum import guard_padded_maximum
from smelt.runtime.onnxruntime import OnnxRuntime

G = "g (float[N,2,H,W] x) => (float[N,2,A,B] y)"
PADS = "int64[8] pads = {0,0,1,1,0,0,1,1}"
POOL = "MaxPool<kernel_shape=[3,3], strides=[2,2]{}>(p)"
VALID = POOL.format(', auto_pad="VALID"')
PLAIN = POOL.format("")


@pytest.mark.parametrize(
    ("pad", "constants"),
    [("Pad(x, pads)", ""), ("Pad(x, pads, zero)", ", float zero = {0}")],
    ids=["by default", "by a zero"],
)
def test_says_that_the_pool_does_not_pad(pad: str, constants: str) -> None:
    head = f"{G} <{PADS}{constants}> {{ p = {pad} "
    check_rewrite(guard_padded_maximum, f"{head} y = {PLAIN} }}", f"{head} y = {VALID} }}")


def test_pads_of_nothing_go() -> None:
    head = f"{G} <{PADS}> {{ p = Pad(x, pads) "
    before = POOL.format(", pads=[0,0,0,0]")
    check_rewrite(guard_padded_maximum, f"{head} y = {before} }}", f"{head} y = {VALID} }}")


def test_more_padding_than_the_kernel_behind_a_relu() -> None:
    head = f"{G} <int64[8] pads = {{0,0,3,3,0,0,3,3}}> {{ r = Relu(x) p = Pad(r, pads) "
    check_rewrite(guard_padded_maximum, f"{head} y = {PLAIN} }}", f"{head} y = {VALID} }}")


KEPT = {
    "others read the Pad": f"p = Pad(x, pads) m = {PLAIN} s = ReduceMax(p) y = Add(m, s)",
    "numbers from 0 on": f"r = Relu(x) p = Pad(r, pads) y = {PLAIN}",
    "another number": f"p = Pad(x, pads, low) y = {PLAIN}",
    "reflections": f'p = Pad<mode="reflect">(x, pads) y = {PLAIN}',
    "padding of its own": f"p = Pad(x, pads) y = {POOL.format(', pads=[1,1,1,1]')}",
    "sizes that are rounded up": f"p = Pad(x, pads) y = {POOL.format(', ceil_mode=1')}",
    "it says so": f"p = Pad(x, pads) y = {VALID}",
    "places": f"p = Pad(x, pads) m, i = {PLAIN} f = Cast<to=1>(i) y = Add(m, f)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_keeps(body: str) -> None:
    check_unchanged(guard_padded_maximum, f"{G} <{PADS}, float low = {{-9}}> {{ {body} }}")


TAKEN_AWAY = {
    "places that nobody reads": f"p = Pad(x, pads) y, i = {PLAIN}",
    "a reader that nobody reads": f"p = Pad(x, pads) s = Sqrt(p) y = {PLAIN}",
    "a pool that is equal": f"p = Pad(x, pads) a = {PLAIN} b = {PLAIN} y = Add(a, b)",
    "an average pool": f"p = Pad(x, pads) a = {PLAIN} "
    "b = AveragePool<kernel_shape=[3,3], strides=[2,2]>(p) y = Add(a, b)",
}


@pytest.mark.parametrize("body", TAKEN_AWAY.values(), ids=TAKEN_AWAY.keys())
def test_the_runtime_gets_it_right(body: str) -> None:
    source = text.parse(f"{G} <{PADS}> {{ {body} }}")
    x = np.linspace(-9, -1, 50, dtype=np.float32).reshape(1, 2, 5, 5)
    (expected,) = OnnxRuntime(source)(x)
    (found,) = OnnxRuntime(smelt.optimize(source), optimized=True)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
