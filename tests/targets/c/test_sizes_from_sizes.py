"""Parts, pads, depths, counts and ends that a model computes from the sizes of its inputs."""

from __future__ import annotations

import numpy as np
import pytest
from sized_library import Sized, SizedLibrary

import smelt
from smelt.errors import SmeltError, UsageError
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime

N = {"N": (1, 9)}
ZERO, ONE = np.array([0]), np.array([1])
MODELS = {
    "split in three": Sized(
        "g (float[2,N] x) => (float[2,A] a, float[2,B] b, float[2,C] c) "
        "{ a, b, c = Split<axis=1,num_outputs=3>(x) }",
        {"N": (5, 12)},
    ),
    "halves": Sized(
        "g (float[2,N] x) => (float[2,A] y, float[2,B] z) { a, b = Split<axis=1,num_outputs=2>(x) "
        "y = Neg(a) z = Exp(b) }",
        {"N": (2, 9)},
    ),
    "pad to a multiple": Sized(
        "g (float[1,2,H,N] x, int64[1] f, int64[1] z) => (float[1,2,P,Q] y) "
        "{ h = Shape<start=2,end=3>(x) w = Shape<start=3,end=4>(x) i = Neg(h) j = Neg(w) "
        "k = Mod(i, f) l = Mod(j, f) p = Concat<axis=0>(z, z, z, z, z, z, k, l) y = Pad(x, p) }",
        N | {"H": (1, 9)},
        {"f": np.array([4]), "z": ZERO},
    ),
    "pad or cut to seven": Sized(
        "g (float[2,N] x, int64[1] k, int64[1] z) => (float[2,M] y) "
        "{ w = Shape<start=1>(x) q = Sub(k, w) p = Concat<axis=0>(z, z, z, q) y = Pad(x, p) }",
        N,
        {"k": np.array([7]), "z": ZERO},
    ),
    "pad before": Sized(
        "g (float[2,N] x, int64[1] k, int64[1] z, int64[1] a, float v) => (float[2,M] y) "
        "{ w = Shape<start=1>(x) q = Sub(k, w) p = Concat<axis=0>(q, z) y = Pad(x, p, v, a) }",
        N,
        {"k": np.array([9]), "z": ZERO, "a": np.array([-1]), "v": np.float32(2)},
    ),
    "reflect": Sized(
        "g (float[2,N] x, int64[1] k, int64[1] z) => (float[2,M] y) { w = Shape<start=1>(x) "
        'q = Sub(w, k) p = Concat<axis=0>(z, q, z, q) y = Pad<mode="reflect">(x, p) }',
        {"N": (2, 9)},
        {"k": ONE, "z": ZERO},
    ),
    "edge": Sized(
        "g (float[2,4] x, float[N] l, int64[1] z) => (float[2,M] y) { q = Shape(l) "
        'p = Concat<axis=0>(z, q, z, q) y = Pad<mode="edge">(x, p) }',
        N,
        {"z": ZERO},
    ),
    "depth": Sized(
        "g (int64[B] i, float[2,N] x, float[2] v, int64 one) => (float[B,N] y) "
        "{ s = Shape(x) d = Gather(s, one) y = OneHot(i, d, v) }",
        {"N": (4, 9), "B": (1, 3)},
        {"one": np.array(1), "v": np.float32([0, 1])},
    ),
    "three at most": Sized(
        "g (float[2,N] x, int64[1] k) => (float[2,K] y, int64[2,K] i) "
        "{ d = Shape<start=1>(x) m = Min(d, k) y, i = TopK(x, m) }",
        N,
        {"k": np.array([3])},
    ),
    "all sorted": Sized(
        "g (float[2,N] x) => (float[2,N] y, int64[2,N] i) { d = Shape<start=1>(x) y, i = TopK(x, d) }",
        N,
    ),
    **{
        f"without {rows}": Sized(
            "g (float[2,N] x, int64[1] s, int64[1] a, int64[1] k) => (float[2,M] y) "
            "{ d = Shape<start=1>(x) e = Sub(d, k) z = Slice(x, s, e, a) y = Neg(z) }",
            N,
            {"s": ZERO, "a": ONE, "k": np.array([rows])},
        )
        for rows in (1, 2, 3, 4, 7)
    },
    **{
        f"the last {rows} to {end}": Sized(
            "g (float[2,N] x, int64[1] e, int64[1] a, int64[1] k) => (float[2,M] y) "
            "{ d = Shape<start=1>(x) s = Sub(d, k) z = Slice(x, s, e, a) y = Neg(z) }",
            N,
            {"e": np.array([end]), "a": ONE, "k": np.array([rows])},
        )
        for rows, end in ((1, 99), (1, 2**63 - 1), (2, 99))
    },
    "the last to the size": Sized(
        "g (float[2,N] x, int64[1] a, int64[1] k) => (float[2,M] y) "
        "{ d = Shape<start=1>(x) s = Sub(d, k) z = Slice(x, s, d, a) y = Neg(z) }",
        N,
        {"a": ONE, "k": ONE},
    ),
    "the last four": Sized(
        "g (float[2,N] x, int64[1] e, int64[1] a, int64[1] k) => (float[2,M] y) "
        "{ d = Shape<start=1>(x) s = Sub(d, k) z = Slice(x, s, e, a) y = Neg(z) }",
        N,
        {"e": np.array([99]), "a": ONE, "k": np.array([4])},
    ),
}


@pytest.fixture(scope="module")
def library() -> SizedLibrary:
    return SizedLibrary(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_sizes_follow_from_sizes(library: SizedLibrary, name: str) -> None:
    """At each size between the bounds, on C and on the host."""
    model = MODELS[name]
    low, high = model.bounds["N"]
    host = smelt.compile(model.model, target="host", engine="numpy")
    reference = OnnxRuntime(model.model)
    others = {dim: ends[1] for dim, ends in model.bounds.items()}
    for size in range(low, high + 1):
        inputs = library.inputs(name, others | {"N": size})
        wanted = reference(*inputs)
        for got in (library.run(name, *inputs), host(*inputs)):
            for mine, theirs in zip(got, wanted, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_uneven_parts_abort_the_run() -> None:
    """Before opset 18, parts of a Split are equal."""
    graph = "g (float[2,N] x) => (float[2,M] y) { a, b = Split<axis=1>(x) y = Mul(a, b) }"
    for target, more in (("c", {"dims": N}), ("host", {"engine": "numpy"})):
        artifact = smelt.compile(text.parse(graph, 13), target=target, **more)
        x = np.arange(12, dtype=np.float32).reshape(2, 6)
        np.testing.assert_array_equal(artifact(x)[0], x[:, :3] * x[:, 3:])
        with pytest.raises(UsageError, match="E670"):
            artifact(x[:, :5].copy())


def test_more_than_there_are_are_not_chosen() -> None:
    graph = (
        "g (float[2,N] x, float[K] l) => (float[2,K] y, int64[2,K] i) "
        "{ k = Shape(l) y, i = TopK(x, k) }"
    )
    artifact = Sized(graph, N | {"K": (1, 9)}).compile()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert artifact(x, np.zeros(2, np.float32))[0].tolist() == [[2, 1], [5, 4]]
    with pytest.raises(SmeltError, match="E670"):
        artifact(x, np.zeros(4, np.float32))
