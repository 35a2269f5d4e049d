"""Inputs that are empty in some runs, such as a cache of keys and values before the first token."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from sized_library import Sized, SizedLibrary

import smelt
from smelt.errors import UsageError
from smelt.runtime.onnxruntime import OnnxRuntime

P = {"P": (0, 4)}
Z, ONE, FAR = np.array([0]), np.array([1]), np.array([2**63 - 1])
MODELS = {
    "a cache": Sized(
        "g (float[B,2,P,4] past, float[B,2,S,4] k, float[B,2,S,4] q) => "
        "(float[B,2,T,4] now, float[B,2,S,4] y) { now = Concat<axis=2>(past, k) "
        "t = Transpose<perm=[0,1,3,2]>(now) s = MatMul(q, t) w = Softmax(s) y = MatMul(w, now) }",
        P | {"B": (1, 2), "S": (1, 3)},
    ),
    "products over nothing": Sized(
        "g (float[2,P] x, float[P,3] w, float[3] b, int64[1] one) => "
        "(float[2,3] y, float[2,3] z, float[2] s, float[2,P] t) "
        "{ y = MatMul(x, w) z = Gemm(x, w, b) s = ReduceSum<keepdims=0>(x, one) t = Softmax(x) }",
        P,
        {"one": ONE},
    ),
    "rows but the first": Sized(
        "g (float[P,2] x, float[1,2] w, int64[1] one, int64[1] far, int64[1] z) => (float[M,2] y) "
        "{ t = Slice(x, one, far, z) y = Concat<axis=0>(t, w) }",
        P,
        {"one": ONE, "far": FAR, "z": Z},
    ),
    "the last row": Sized(
        "g (float[P,2] x, int64[1] one, int64[1] far, int64[1] z) => (float[M,2] y) "
        "{ n = Shape<end=1>(x) s = Sub(n, one) t = Slice(x, s, far, z) y = Neg(t) }",
        P,
        {"one": ONE, "far": FAR, "z": Z},
    ),
    "whether there is any": Sized(
        "g (float[P,2] x, float[2] a, float[2] b, int64 z) => (float[2] y, float[2] w) "
        "{ n = Size(x) c = Greater(n, z) y = Where(c, a, b) "
        "w = If(c) <then_branch = t () => (float[2] u) { u = Neg(a) }, "
        "else_branch = e () => (float[2] v) { v = Exp(b) }> }",
        P,
        {"z": np.array(0)},
    ),
    "moved": Sized(
        "g (float[P,2] x, int64[4] p, int64[2] r, int64 a) => "
        "(float[Q,2] y, float[R,4] z, float[P,2] c, float[2,P] t) "
        "{ y = Pad(x, p) z = Tile(x, r) c = CumSum(x, a) t = Transpose(x) }",
        P,
        {"p": np.array([1, 0, 1, 0]), "r": np.array([2, 2]), "a": np.array(0)},
    ),
    "one more than at least one": Sized(
        "g (float[P] x, int64[1] one) => (float[M] y) "
        "{ n = Shape(x) k = Max(n, one) l = Add(k, one) y = ConstantOfShape(l) }",
        P,
        {"one": ONE},
    ),
    "two sizes": Sized("g (float[P,1] x, float[1,Q] z) => (float[P,Q] y) { y = Add(x, z) }",
                       P | {"Q": (0, 3)}),
}  # fmt: skip


@pytest.fixture(scope="module")
def library() -> SizedLibrary:
    return SizedLibrary(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_sizes_from_zero_on(library: SizedLibrary, name: str) -> None:
    model = MODELS[name]
    reference = OnnxRuntime(model.model)
    others = [{dim: ends[side] for dim, ends in model.bounds.items()} for side in (0, 1)]
    for size in range(5):
        for sizes in others:
            inputs = library.inputs(name, sizes | {"P": size})
            for mine, theirs in zip(library.run(name, *inputs), reference(*inputs), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_jax_assumes_sizes_of_one_or_more() -> None:
    """So do functions that were traced before, and copies of their models."""
    traced = smelt.trace(jnp.mean, "f32[N]")
    for source in ((jnp.mean, "f32[N]"), (traced,), (smelt.optimize(traced),)):
        with pytest.raises(UsageError, match=r"E633.*\n.*JAX assumes that every size is 1 or more"):
            smelt.compile(*source, target="c", dims={"N": (0, 4)})
