"""A scale and an offset for each channel become BatchNormalization."""

from __future__ import annotations

import numpy as np
import pytest
from literals import literal
from rewrites import check_operators, check_rewrite, check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.norms.fuse_elementwise_to_batchnorm import fuse_elementwise_to_batchnorm

BODIES = {
    "plain": ("p = Mul(x, s) y = Add(p, c)", 1),
    "swapped": ("p = Mul(s, x) y = Add(c, p)", 1),
    "subtracted": ("p = Mul(x, s) y = Sub(p, c)", -1),
}


@pytest.mark.parametrize("shape", ["3,1,1", "1,3,1,1"])
@pytest.mark.parametrize(("body", "sign"), BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
@pytest.mark.parametrize("opset", [13, 14, 23])
def test_fuses(shape: str, body: str, sign: int, dtype: str, opset: int) -> None:
    g = f"g ({dtype}[N,3,H,2] x) => ({dtype}[N,3,H,2] y)"
    s, c = (2.0, 0.5, -1.0), (4.0, 0.0, 1.0)
    vectors = {"s": s, "b": tuple(sign * n for n in c), "m": (0, 0, 0), "v": (1, 1, 1)}
    after = ", ".join(f"{dtype}[3] {k} = {literal(dtype, *n)}" for k, n in vectors.items())
    check_rewrite(
        fuse_elementwise_to_batchnorm,
        f"{g} <{dtype}[{shape}] s = {literal(dtype, *s)}, {dtype}[{shape}] c = "
        f"{literal(dtype, *c)}> {{ {body} }}",
        f"{g} <{after}> {{ y = BatchNormalization<epsilon=0.0>(x, s, b, m, v) }}",
        opset=opset,
        modes=("normal",),
    )


@pytest.mark.parametrize(
    ("s", "c"),
    [("[] s = {2}", "[3,1,1] c = {1,2,3}"), ("[3,1,1] s = {1,2,3}", "[1] c = {4}")],
)
def test_one_of_the_constants_may_be_a_scalar(s: str, c: str) -> None:
    check_operators(
        fuse_elementwise_to_batchnorm,
        f"g (float[N,3,2,2] x) => (float[N,3,2,2] y) <float{s.removeprefix('[]')}, float{c}> "
        "{ p = Mul(x, s) y = Add(p, c) }",
        ["BatchNormalization"],
        modes=("normal",),
    )


@pytest.mark.parametrize(
    ("s", "c"),
    [
        ("[] s = {2}", "[] c = {4}"),
        ("[] s = {2}", "[3,1,1] c = {1,2,3}"),
        ("[3,1,1] s = {1,2,3}", "[1] c = {4}"),
    ],
)
def test_constants_of_one_element_stay_on_request(s: str, c: str) -> None:
    check_unchanged(
        fuse_elementwise_to_batchnorm,
        f"g (float[N,3,2,2] x) => (float[N,3,2,2] y) <float{s.removeprefix('[]')}, "
        f"float{c.removeprefix('[]')}> {{ p = Mul(x, s) y = Add(p, c) }}",
        scalars=False,
    )


def test_constants_of_channels_fuse_without_scalars() -> None:
    check_operators(
        fuse_elementwise_to_batchnorm,
        "g (float[N,3,2,2] x) => (float[N,3,2,2] y) <float[3,1,1] s = {1,2,3}, "
        "float[3,1,1] c = {4,5,6}> { p = Mul(x, s) y = Add(p, c) }",
        ["BatchNormalization"],
        modes=("normal",),
        scalars=False,
    )


@pytest.mark.parametrize(("x", "c"), [("N,3,5", "3,1"), ("2,3,2,1,2", "3,1,1,1"), ("0,3,2", "3,1")])
def test_any_number_of_spatial_axes(x: str, c: str) -> None:
    check_operators(
        fuse_elementwise_to_batchnorm,
        f"g (float[{x}] x) => (float[{x}] y) <float[{c}] s = {{1,2,3}}, float[{c}] c = {{4,5,6}}> "
        "{ p = Mul(x, s) y = Add(p, c) }",
        ["BatchNormalization"],
        modes=("normal",),
    )


C = "float[3,1,1] s = {1,2,3}, float[3,1,1] c = {4,5,6}"
END = "{ p = Mul(x, s) y = Add(p, c) }"
KEPT = {
    "one channel, widened": f"g (float[1,1,2,2] x) => (float[1,3,2,2] y) <{C}> {END}",
    "one channel of many images": f"g (float[N,1,H,W] x) => (float[N,3,H,W] y) <{C}> {END}",
    "channels of unknown number": f"g (float[N,K,2,2] x) => (float[N,3,2,2] y) <{C}> {END}",
    "an x of lower rank": f"g (float[2,2] x) => (float[3,2,2] y) <{C}> {END}",
    "channels in another axis": "g (float[N,3,3] x) => (float[N,3,3] y) "
    f"<float[3] s = {{1,2,3}}, float[3] c = {{4,5,6}}> {END}",
    "axis 0": f"g (float[3,3,2] x) => (float[3,3,2] y) <{C}> {END}",
    "a constant that raises the rank": "g (float[N,3,2] x) => (float[1,N,3,2] y) "
    f"<float[1,1,3,1] s = {{1,2,3}}, float[3,1] c = {{4,5,6}}> {END}",
    "an offset that widens": "g (float[1,3,2] x) => (float[2,3,2] y) "
    f"<float[3,1] s = {{1,2,3}}, float[2,3,1] c = {{1,2,3,4,5,6}}> {END}",
    "one channel, one number": "g (float[N,1,2] x) => (float[N,1,2] y) "
    f"<float s = {{1}}, float c = {{4}}> {END}",
    "integers": f"g (int32[N,3,2,2] x) => (int32[N,3,2,2] y) <{C}> {END}".replace("float", "int32"),
    "an infinite scale": "g (float[N,2,2] x) => (float[N,2,2] y) <float[2,1] s = "
    f"{literal('float', 1, np.inf)}, float[2,1] c = {{1,2}}> {END}",
    "subtracted from": f"g (float[N,3,2,2] x) => (float[N,3,2,2] y) <{C}> "
    "{ p = Mul(x, s) y = Sub(c, p) }",
    "the product is an output": "g (float[N,3,2,2] x) => (float[N,3,2,2] y, float[N,3,2,2] p) "
    f"<{C}> {END}",
    "a scale of the caller": "g (float[N,3,2,2] x, float[3,1,1] s) => (float[N,3,2,2] y) "
    f"<{C}> {END}",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_elementwise_to_batchnorm, graph)


def test_the_convolution_before_takes_it() -> None:
    model = text.parse(
        "g (float[1,1,4,4] x) => (float[1,3,4,4] y) <float[3,1,1,1] w = {1,2,3}, "
        f"{C}> {{ h = Conv(x, w) p = Mul(h, s) y = Add(p, c) }}"
    )
    done = optimize(
        model, pipeline="fuse-elementwise-to-batchnorm,fuse-conv-batchnorm", verify="each"
    )
    assert [node.op_type for node in done.graph] == ["Conv"]
