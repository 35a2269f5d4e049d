"""Data-dependent sizes: results have a capacity, and a run returns how much of it they use."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sized_library import Sized, SizedLibrary, weights

from smelt.errors import ErrorList, SmeltError, UsageError
from smelt.runtime.onnxruntime import OnnxRuntime

AXIS, TWO = np.array([0]), np.array(2)
BOUNDED = {"N": (1, 12), "M": (1, 12)}
MODELS = {
    "nonzero": Sized(
        "g (float[B,4] x) => (int64[2,N] y) { z = Relu(x) y = NonZero(z) }", {"B": (1, 5)}
    ),
    "what follows": Sized(
        "g (float[12] x, int64[1] a, float[1,3] w, float[3] s, int64[1] o) => "
        "(float[N] y, float[1] t, float[N,3] l, int64[1] n) { z = Relu(x) i = NonZero(z) "
        "r = Squeeze(i, a) v = Gather(x, r) y = Softmax<axis=0>(v) t = ReduceSum(v) "
        "u = Unsqueeze(v, o) e = MatMul(u, w) l = LayerNormalization<axis=-1>(e, s) n = Shape(v) }",
        {},
        weights(w=(1, 3), s=(3,)) | {"a": AXIS, "o": np.array([1])},
    ),
    "compress": Sized(
        "g (float[5,3] x, bool[5] c, float[3,2] w) => (float[N,3] y, float[N,2] z) "
        "{ y = Compress<axis=0>(x, c) z = MatMul(y, w) }",
        {},
        weights(w=(3, 2)),
    ),
    "unique": Sized(
        "g (float[7] x) => (float[N] y, int64[N] i, int64[7] v, int64[N] c) "
        "{ r = Round(x) y, i, v, c = Unique(r) }"
    ),
    "unique rows": Sized(
        "g (int64[5,2] x, int64 two) => (int64[N,2] y) { t = Mod(x, two) y = Unique<axis=0>(t) }",
        {},
        {"two": TWO},
    ),
    "boxes": Sized(
        "g (float[1,6,4] b, float[1,2,6] s, int64[1] m, float[1] o, int64 two, int64[1] z) => "
        "(int64[N,3] k, float[N,4] y) { k = NonMaxSuppression(b, s, m, o) "
        "c = Gather<axis=1>(k, two) f = Squeeze(b, z) y = Gather(f, c) }",
        {},
        {"m": np.array([3]), "o": np.float32([0.3]), "two": TWO, "z": AXIS},
    ),
}
MODELS |= {
    "the best of what is found": Sized(
        "g (float[1,B,4] b, float[1,2,B] s, int64[1] m, float[1] o, int64 two, int64[1] z, int64[1] most) "
        "=> (float[K] t, float[K,4] y) { k = NonMaxSuppression(b, s, m, o) v = GatherND(s, k) "
        "c = Gather<axis=1>(k, two) f = Squeeze(b, z) g = Gather(f, c) n = Shape(v) l = Min(n, most) "
        "t, i = TopK(v, l) y = Gather(g, i) }",
        {"B": (1, 9)},
        {"m": np.array([3]), "o": np.float32([0.3]), "two": TWO, "z": AXIS, "most": np.array([4])},
    ),
    "unique of an open axis": Sized(
        "g (float[2,B] x) => (float[N] y, int64[M] v) { r = Round(x) y, i, v, c = Unique(r) }",
        {"B": (1, 9)},
    ),
}
MODELS |= {
    "a branch": Sized(
        "g (bool c, float[B,2] x) => (float[N,2] y, float[N] s, float[M,2] z) <int64[1] a = {1}> { "
        "t, z = If<then_branch = t () => (float[B,2] p, float[1,2] o) { p = Exp(x) "
        "m = Constant<value_ints=[0]>() o = ReduceMax<keepdims=1>(x, m) }, "
        "else_branch = e () => (float[D,2] q, float[B,2] r) { q = Concat<axis=0>(x, x, x) "
        "r = Neg(x) }>(c) y = Softmax<axis=0>(t) s = ReduceSum<keepdims=0>(y, a) }",
        {"B": (1, 5)},
    ),
    "a branch of nothing": Sized(
        "g (bool c, float[4] x) => (float[N] y, float t) { v = If<then_branch = t () => (float[4] p) "
        "{ p = Exp(x) }, else_branch = e () => (float[0] q) { q = Constant<value=float[0] {}>() }>(c) "
        "y = Neg(v) t = ReduceSum<keepdims=0>(y) }"
    ),
}
MODELS |= {
    "results of a branch, each with a bound of its own": Sized(
        "g (bool c, float[B,2] x) => (float[N] y, float s) { t, z = If<then_branch = t () => "
        "(float[B,2] p, float[9] o) { p = Exp(x) o = Constant<value=float[9] {1,2,3,4,5,6,7,8,9}>() }, "
        "else_branch = e () => (float[1,2] q, float[3] r) { q = Constant<value=float[1,2] {1,2}>() "
        "r = Constant<value=float[3] {1,2,3}>() }>(c) y = Relu(z) s = ReduceSum<keepdims=0>(t) }",
        {"B": (2, 5)},
    ),
    "no dim that may be 1": Sized(
        "g (float[1,B,1,3] x) => (float[B,3] y) { z = Squeeze(x) y = Neg(z) }", {"B": (2, 5)}
    ),
    "what no round reads is as the last one leaves it": Sized(
        "g (float[2,B] x, int64 n) => (float[2,B] y, float[2] s) <int64[1] last = {1}> { "
        "one = Constant<value=int64 {3}>() t = Constant<value=bool {1}>() "
        "u = Constant<value=float[1] {0}>() s0 = ReduceSum<keepdims=0>(x, last) "
        "y, s, v = Loop(one, t, u, s0, u) <body = b (int64 i, bool c, float[K] p, float[2] q, float[L] r) "
        "=> (bool d, float[2,B] e, float[2] f, float[2,2,B] g) { w = Unsqueeze(q, last) e = Mul(x, w) "
        "h = ReduceMax<keepdims=0>(e, last) f = Add(h, q) m = Constant<value=float {10}>() "
        "k = ReduceMax<keepdims=0>(f) d = Less(k, m) a = Constant<value_ints=[0]>() j = Unsqueeze(e, a) g = Concat<axis=0>(j, j) }> }",
        {"B": (1, 5)},
    ),
}
TOLD = {
    "slice": Sized(
        "g (float[B,6] x, int64[2] s, int64[2] e, int64[2] a, int64[2] t) => (float[N,M] y, float[N,M] z) "
        "{ y = Slice(x, s, e, a, t) z = Exp(y) }",
        {"B": (1, 5)},
    ),
    "nothing": Sized(
        "g (float[5,3] x, int64[2] from, int64[2] to) => (float[N,0] y) { y = Slice(x, from, to) }",
        {"N": (0, 5)},
    ),
    "slice of ints": Sized(
        "g (int32[5] x, int32[1] s, int32[1] e) => (int32[N] y) { y = Slice(x, s, e) }"
    ),
    "pad": Sized("g (float[4,5] x, int64[4] p) => (float[N,M] y) { y = Pad(x, p) }", BOUNDED),
    "pad axes": Sized(
        "g (float16[4,5] x, int64[2] p, float16 v, int64[1] a) => (float16[N,M] y) { y = Pad(x, p, v, a) }",
        BOUNDED,
    ),
    "reflect": Sized(
        'g (float[4,5] x, int64[4] p) => (float[N,M] y) { y = Pad<mode="reflect">(x, p) }', BOUNDED
    ),
    "edge": Sized(
        'g (float[4,5] x, int64[4] p) => (float[N,M] y) { y = Pad<mode="edge">(x, p) }', BOUNDED
    ),
    "reshape": Sized(
        "g (float[B,6] x, int64[3] s) => (float[N,M,K] y, float[N,M,K] z) "
        "{ a = Abs(x) y = Reshape(a, s) z = Neg(y) }",
        {"B": (1, 4), "N": (0, 24), "M": (0, 24), "K": (0, 24)},
    ),
    "mel": Sized(
        "g (int64 n, int64 l, int64 r, float a, float b) => (float[N,M] y) "
        "{ y = MelWeightMatrix(n, l, r, a, b) }",
        {"N": (1, 129), "M": (1, 40)},
    ),
    "tile": Sized("g (int8[2,3] x, int64[2] r) => (int8[N,M] y) { y = Tile(x, r) }", BOUNDED),
    "top k": Sized(
        "g (float[B,6] x, int64[1] k) => (float[B,M] y, int64[B,M] i) { y, i = TopK(x, k) }",
        {"B": (1, 4)},
    ),
    "expand": Sized(
        "g (float[1,4] x, int64[2] s) => (float[N,4] y) { y = Expand(x, s) }", {"N": (1, 9)}
    ),
    "loop": Sized(
        "g (int64 n, float[2] x) => (float[2] o, float[N,2] rows) { t = Constant<value=bool {1}>() "
        "o, rows = Loop(n, t, x) <body = b (int64 i, bool c, float[2] s) => "
        "(bool d, float[2] e, float[2] r) { d = Identity(c) e = Add(s, s) r = Mul(e, s) }> }",
        {"N": (0, 6)},
    ),
    "split": Sized(
        "g (float[B,6] x, int64[2] n) => (float[B,N] y, float[B,M] z) { y, z = Split<axis=1>(x, n) }",
        {"B": (1, 3)},
    ),
    "one hot": Sized(
        "g (int64[B] i, int64 d, float[2] v) => (float[B,N] y) { y = OneHot(i, d, v) }",
        {"B": (1, 3), "N": (1, 9)},
    ),
    "resize": Sized(
        'g (float[1,1,5,X] x, int64[2] n) => (float[1,1,N,M] y) { y = Resize<axes=[2,3],mode="linear">(x, , , n) }',
        {"X": (1, 8)} | BOUNDED,
    ),
    "range": Sized(
        "g (int64 s, int64 l, int64 d) => (int64[N] y) { y = Range(s, l, d) }", {"N": (1, 9)}
    ),
}


@pytest.fixture(scope="module")
def library() -> SizedLibrary:
    return SizedLibrary(MODELS | TOLD)


@pytest.mark.parametrize("name", MODELS)
def test_results_have_the_sizes_that_the_data_say(library: SizedLibrary, name: str) -> None:
    for seed in range(5):
        for sizes in MODELS[name].trials(1):
            library.check(name, sizes, seed)


def test_nothing_may_be_found(library: SizedLibrary) -> None:
    (y,) = library.run("nonzero", np.full((2, 4), -1, np.float32))
    assert y.shape == (2, 0)
    y, t, normed, n = library.run("what follows", np.zeros(12, np.float32))
    assert (y.shape, t.tolist(), normed.shape, n.tolist()) == ((0,), [0], (0, 3), [0])


def test_all_may_be_found(library: SizedLibrary) -> None:
    (y,) = library.run("nonzero", np.ones((5, 4), np.float32))
    assert y.shape == (2, 20)


X = np.arange(30, dtype=np.float32).reshape(5, 6)
STARTS = st.integers(-8, 8) | st.sampled_from([2**63 - 1, -(2**63)])


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(STARTS, STARTS, st.sampled_from([1, 2, 3, 7, -1, -2, -9])), min_size=2, max_size=2
    ),
    st.sampled_from([(0, 1), (1, 0), (-1, 0)]),
    st.integers(1, 5),
)
def test_a_slice_with_run_time_bounds(
    library: SizedLibrary, cuts: list[tuple[int, int, int]], axes: tuple[int, int], rows: int
) -> None:
    """Results are those of ONNX Runtime, except for starts before the first row, which it and NumPy
    read differently.
    """
    x = X[:rows]
    starts, ends, steps = (np.array(each) for each in zip(*cuts, strict=True))
    parts = [slice(None), slice(None)]
    for axis, (start, end, step) in zip(axes, cuts, strict=True):
        size = x.shape[axis]
        # Backwards, ONNX begins at the first row at least, NumPy before it.
        parts[axis] = slice(max(start, -size) if step < 0 else start, end, step)
    wanted = x[tuple(parts)]
    y, z = library.run("slice", x, starts, ends, np.array(axes), steps)
    np.testing.assert_array_equal(y, wanted)
    assert z.shape == wanted.shape


PADS = st.lists(st.integers(0, 3), min_size=4, max_size=4)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["constant", "reflect", "edge"]), PADS)
def test_pads_told_by_the_run(library: SizedLibrary, mode: str, pads: list[int]) -> None:
    x = X[:4, :5].copy()
    name = {"constant": "pad"}.get(mode, mode)
    (y,) = library.run(name, x, np.array(pads))
    np.testing.assert_array_equal(y, np.pad(x, [(pads[0], pads[2]), (pads[1], pads[3])], mode=mode))


def test_rows_of_no_element_are_counted(library: SizedLibrary) -> None:
    (y,) = library.run("nothing", X[:5, :3].copy(), np.array([2, 3]), np.array([9, 9]))
    assert y.shape == (3, 0)


def test_a_negative_pad_takes_away(library: SizedLibrary) -> None:
    x = X[:4, :5].copy()
    (y,) = library.run("pad", x, np.array([-1, 0, 2, -2]))
    np.testing.assert_array_equal(y, np.pad(x[1:, :3], [(0, 2), (0, 0)]))
    value, half = np.float16(3), x.astype(np.float16)
    (y,) = library.run("pad axes", half, np.array([1, 2]), value, np.array([-1]))
    np.testing.assert_array_equal(y, np.pad(half, [(0, 0), (1, 2)], constant_values=3))


def test_repeats_counts_and_limits_told_by_the_run(library: SizedLibrary) -> None:
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    for repeats in ((1, 1), (3, 2), (6, 4)):
        np.testing.assert_array_equal(
            library.run("tile", x, np.array(repeats))[0], np.tile(x, repeats)
        )
    values, places = library.run("top k", X[:2, ::-1].copy(), np.array([4]))
    assert (values.shape, places[0].tolist()) == ((2, 4), [0, 1, 2, 3])
    assert library.run("top k", X[:2].copy(), np.array([0]))[0].shape == (2, 0)
    (y,) = library.run("expand", X[:1, :4].copy(), np.array([5, 4]))
    np.testing.assert_array_equal(y, np.broadcast_to(X[:1, :4], (5, 4)))
    assert library.run("expand", X[:1, :4].copy(), np.array([3, 1]))[0].shape == (3, 4)
    assert library.run("range", np.array(2), np.array(11), np.array(4))[0].tolist() == [2, 6, 10]
    assert library.run(
        "slice of ints", np.arange(5, dtype=np.int32), np.int32([1]), np.int32([-1])
    )[0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "sizes", [(2, 3, 2), (-1, 2, 3), (0, 2, -1), (12, 1, 1), (1, -1, 4), (0, 0, 1)]
)
def test_sizes_of_a_reshape_told_by_the_run(
    library: SizedLibrary, sizes: tuple[int, int, int]
) -> None:
    x = X[:2].copy()
    shape = [x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]
    y, z = library.run("reshape", x, np.array(sizes))
    np.testing.assert_array_equal(y, x.reshape(shape))
    np.testing.assert_array_equal(z, -y)


@pytest.mark.parametrize(
    ("bands", "length", "rate", "low", "high"),
    [(8, 16, 8192, 0, 4096), (23, 256, 8000, 64, 3800), (5, 8, 100, 0, 50), (1, 2, 10, 1, 4)],
)
def test_mel_bands_with_run_time_sizes(
    library: SizedLibrary, bands: int, length: int, rate: int, low: float, high: float
) -> None:
    """Some narrow bands have equal ends; results have the bits of ONNX Runtime."""
    given = (*(np.array(each) for each in (bands, length, rate)), *map(_float, (low, high)))
    (wanted,) = OnnxRuntime(TOLD["mel"].model)(*given)
    np.testing.assert_array_equal(library.run("mel", *given)[0], wanted)


def _float(number: float) -> np.ndarray:
    return np.array(number, np.float32)


@pytest.mark.parametrize("count", [0, 1, 6])
def test_rows_of_a_loop_that_the_run_counts(library: SizedLibrary, count: int) -> None:
    last, rows = library.run("loop", np.array(count), np.float32([1, 3]))
    assert last.tolist() == [2**count, 3 * 2**count]
    wanted = [[2 * 4**i, 18 * 4**i] for i in range(count)]
    np.testing.assert_array_equal(rows, np.float32(wanted).reshape(count, 2))


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("slice", (X, np.zeros(2, int), np.ones(2, int), np.array([0, 1]), np.array([0, 1]))),
        ("slice", (X, np.zeros(2, int), np.ones(2, int), np.array([0, 2]), np.array([1, 1]))),
        ("pad", (X[:4, :5].copy(), np.array([9, 0, 0, 0]))),
        ("pad", (X[:4, :5].copy(), np.array([2**62, 0, 2**62, 0]))),
        ("pad", (X[:4, :5].copy(), np.array([-5, 0, 0, 0]))),
        ("reflect", (X[:4, :5].copy(), np.array([-1, 0, 0, 0]))),
        ("tile", (np.zeros((2, 3), np.int8), np.array([7, 1]))),
        ("reshape", (X[:2].copy(), np.array([5, -1, 1]))),
        ("reshape", (X[:2].copy(), np.array([2, 3, 3]))),
        ("reshape", (X[:2].copy(), np.array([-1, -1, 3]))),
        ("reshape", (X[:2].copy(), np.array([2, 6, 0]))),
        ("reshape", (X[:2].copy(), np.array([2**40, 2**40, 2**40]))),
        ("tile", (np.zeros((2, 3), np.int8), np.array([-1, 1]))),
        ("tile", (np.zeros((2, 3), np.int8), np.array([2**63 - 1, 1]))),
        ("top k", (X[:2].copy(), np.array([7]))),
        ("top k", (X[:2].copy(), np.array([-1]))),
        ("expand", (X[:1, :4].copy(), np.array([10, 4]))),
        ("expand", (X[:1, :4].copy(), np.array([2, 3]))),
        ("loop", (np.array(7), np.ones(2, np.float32))),
        ("range", (np.array(0), np.array(10), np.array(1))),
        ("range", (np.array(0), np.array(1), np.array(0))),
    ],
)
def test_sizes_beyond_the_bounds_end_the_run(
    library: SizedLibrary, name: str, inputs: tuple[np.ndarray, ...]
) -> None:
    with pytest.raises(UsageError, match="E670"):
        library.run(name, *inputs)


def test_a_declared_size_is_checked() -> None:
    """The input gives another number of rows than the three that the model declares."""
    artifact = Sized(
        "g (float[1,4] x, int64[2] s) => (float[3,4] y) { y = Expand(x, s) }"
    ).compile()
    x = X[:1, :4].copy()
    assert artifact(x, np.array([3, 4]))[0].shape == (3, 4)
    with pytest.raises(UsageError, match="E670"):
        artifact(x, np.array([5, 4]))


def test_a_size_outlives_the_result_that_has_it() -> None:
    """Nothing reads the result of NonZero, but its size is used."""
    graph = (
        "g (float[6] x, float[1] v) => (float[N] y) "
        "{ i = NonZero(x) s = Shape<start=1,end=2>(i) y = Expand(v, s) }"
    )
    (y,) = Sized(graph).compile()(np.float32([1, 0, 2, 0, 0, 3]), np.float32([7]))
    assert y.tolist() == [7, 7, 7]


def test_the_header_says_the_greatest_length() -> None:
    header = MODELS["nonzero"].compile().files["model.h"].decode()
    told = dict(re.findall(r"^#define MODEL_(\w+) (\S+)", header, re.M))
    assert (told["LENGTHS"], told["LENGTH0_MAX"], told["OUTPUT0_SHAPE"]) == ("1", "20", "{2,")
    assert "const ptrdiff_t *sizes, ptrdiff_t *lengths);" in header


def test_a_size_that_nothing_bounds_is_refused() -> None:
    graph = "g (float[4,5] x, int64[4] p) => (float[N,M] y) { y = Pad(x, p) }"
    with pytest.raises((SmeltError, ErrorList), match="E411"):
        Sized(graph).compile()


def test_parts_told_by_the_run(library: SizedLibrary) -> None:
    x = X[:2]
    y, z = library.run("split", x, np.array([4, 2]))
    np.testing.assert_array_equal(y, x[:, :4])
    np.testing.assert_array_equal(z, x[:, 4:])
    for sizes in ([4, 3], [-1, 7], [3, 2]):
        with pytest.raises(SmeltError, match="E67"):
            library.run("split", x, np.array(sizes))


@pytest.mark.parametrize("depth", [1, 4, 9])
def test_a_depth_told_by_the_run(library: SizedLibrary, depth: int) -> None:
    (y,) = library.run("one hot", np.array([0, -1]), np.int64(depth), np.float32([0, 1]))
    np.testing.assert_array_equal(y, np.eye(depth, dtype=np.float32)[[0, -1]])


@pytest.mark.parametrize("sizes", [(1, 1), (12, 3), (5, 12)])
def test_sizes_of_an_image_told_by_the_run(library: SizedLibrary, sizes: tuple[int, int]) -> None:
    for columns in (1, 4, 6):
        x = X.reshape(-1)[: 5 * columns].reshape(1, 1, 5, columns)
        given = (x, np.array(sizes))
        (y,), (wanted,) = library.run("resize", *given), OnnxRuntime(TOLD["resize"].model)(*given)
        np.testing.assert_allclose(y, wanted, rtol=1e-5)
