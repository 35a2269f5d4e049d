"""Open sizes of the target c: a run receives them with its inputs, within the bounds of the
compile.
"""

from __future__ import annotations

import ctypes
import re

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sized_library import Sized, SizedLibrary, weights

import smelt
from smelt.errors import ErrorList, SmeltError, UsageError
from smelt.ir import text
from smelt.runtime.c_library import build

TRANSFORMER = """g (float[B,S,8] x, float[8,8] wq, float[8,8] wk, float[8,8] wv, float[8] g, float[8] b,
    float[8,12] w1, float[12,8] w2, int64[4] heads, int64[3] whole, float scale, int64 zero, int64 one,
    int64[1] a0, int64[1] a1, float low) => (float[B,S,8] y, float[B,8] last) {
    q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv)
    q4 = Reshape(q, heads) k4 = Reshape(k, heads) v4 = Reshape(v, heads)
    qt = Transpose<perm=[0,2,1,3]>(q4) kt = Transpose<perm=[0,2,3,1]>(k4)
    vt = Transpose<perm=[0,2,1,3]>(v4) products = MatMul(qt, kt) scores = Mul(products, scale)
    size = Shape<start=1,end=2>(x) n = Squeeze(size) r = Range(zero, n, one)
    rows = Unsqueeze(r, a1) columns = Unsqueeze(r, a0) seen = LessOrEqual(columns, rows)
    masked = Where(seen, scores, low) p = Softmax<axis=-1>(masked) o = MatMul(p, vt)
    ot = Transpose<perm=[0,2,1,3]>(o) joined = Reshape(ot, whole) added = Add(joined, x)
    n1 = LayerNormalization<axis=-1>(added, g, b) h = MatMul(n1, w1) t = Tanh(h) m = MatMul(t, w2)
    y = Add(m, n1) mean = ReduceMean<keepdims=0>(y, a1) last = Relu(mean) }"""

CNN = """g (float[B,3,12,12] x, float[8,3,3,3] w, float[8] b, float[8,1,3,3] dw, float[6,8,1,1] pw,
    float[6,5] v, float[5] c) => (float[B,5] y, float[B,6,3,3] planes) {
    conv = Conv<pads=[1,1,1,1]>(x, w, b) r = Relu(conv)
    p = MaxPool<kernel_shape=[2,2],strides=[2,2]>(r) d = Conv<pads=[1,1,1,1],group=8>(p, dw)
    q = AveragePool<kernel_shape=[2,2],strides=[2,2]>(d) e = Conv(q, pw) planes = Sigmoid(e)
    pooled = GlobalAveragePool(planes) flat = Flatten(pooled) y = Gemm(flat, v, c) }"""

IMAGES = """g (float[B,2,Y,X] x, float[4,2,3,3] w, float[4] b) => (float[B,4,P,Q] y, float[B,2,R,T] m,
    float[B,2,R,T] a) {
    conv = Conv<pads=[1,2,0,1],strides=[2,3],dilations=[1,2]>(x, w, b) y = Relu(conv)
    m = MaxPool<kernel_shape=[3,2],strides=[2,1]>(x)
    a = AveragePool<kernel_shape=[3,2],strides=[2,1]>(x) }"""

MOVES = """g (float[B,S,4] x, float[B,P,4] past, int64[B,S] i, float[9,4] table, int64[1] from,
    int64[1] to, int64[1] axis, int64[1] step) =>
    (float[S,B,4] t, float[B,T,4] c, float[B,M,4] s, float[B,S,4] e, float[R,2] r, int64[3] sizes,
     int64[B] best) {
    t = Transpose<perm=[1,0,2]>(x) c = Concat<axis=1>(past, x) s = Slice(x, from, to, axis, step)
    g = Gather(table, i) e = Mul(g, x) pairs = Constant<value_ints=[-1, 2]>() r = Reshape(x, pairs)
    sizes = Shape(c) total = ReduceSum<keepdims=0>(e, two) best = ArgMax<axis=1,keepdims=0>(total)
    }""".replace("e, two", "e, last").replace("int64[1] step)", "int64[1] step, int64[1] last)")

SAMPLED = """g (float[T,B,2] x, float[B,4] boxes, float[4,C,6,5] image, float[4,T,B,2] grid) =>
    (float[T,B,2] r, float[4,C,T,B] s, float[B,C,2,3] a) {
    i = ArgMax<axis=1,keepdims=0>(boxes) one = Constant<value_int=1>() n = Add(i, one)
    r = ReverseSequence(x, n) s = GridSample<padding_mode="reflection">(image, grid)
    a = RoiAlign<output_height=2,output_width=3,sampling_ratio=2>(image, boxes, i) }"""

SPECTRA = """g (float[B,12,C] x, float[B,8,6] columns) =>
    (float[B,C,9,2] y, float[B,2,4,3] image) {
    t = Transpose<perm=[0,2,1]>(x) four = Constant<value_ints=[0,0,12,1]>() r = Reshape(t, four)
    n = Constant<value_int=9>() y = DFT<axis=2>(r, n)
    size = Constant<value_ints=[4,3]>() block = Constant<value_ints=[2,2]>()
    image = Col2Im(columns, size, block) }"""

MASKED = """g (float[B,S,8] q, float[B,T,8] k, float[B,S,T] low, float[1,T] s, float[B,T,P] v)
    => (float[B,S,P] y, float[B,S,T] z) {
    kt = Transpose<perm=[0,2,1]>(k) scores = MatMul(q, kt) masked = Add(scores, low)
    p = Softmax<axis=-1>(masked) y = MatMul(p, v) scaled = Mul(scores, s) z = Relu(scaled) }"""
"""Products finished by operands of which a run says how far their rows are apart."""

WINDOWS = """g (float[B,2,Y,X] x) => (float[B,2,P,Q] m, float[B,2,R,T] a) {
    m = MaxPool<kernel_shape=[1,2],strides=[2,3],ceil_mode=1>(x)
    a = AveragePool<kernel_shape=[3,3],strides=[3,2],pads=[1,1,1,1],ceil_mode=1>(x) }"""
"""Where the last window would begin in the padding, there is none."""

PADDED = """g (float[N,3] x, int64[4] across, int64[4] less, int64[4] more) => (float[N,4] r,
    float[P,3] c, float[Q,3] e, float[Q,3] w) {
    r = Pad<mode="reflect">(x, across) c = Pad(x, less) e = Pad<mode="edge">(x, more)
    w = Pad<mode="wrap">(x, more) }"""

NUMBERS = {
    "heads": np.array([0, 0, 2, 4]),
    "whole": np.array([0, 0, 8]),
    "scale": np.float32(0.5),
    "zero": np.array(0),
    "one": np.array(1),
    "a0": np.array([0]),
    "a1": np.array([1]),
    "low": np.float32(-1e9),
}
SEQUENCE = {"B": (1, 3), "S": (1, 40)}
MODELS = {
    "transformer": Sized(
        TRANSFORMER,
        SEQUENCE,
        weights(wq=(8, 8), wk=(8, 8), wv=(8, 8), g=(8,), b=(8,), w1=(8, 12), w2=(12, 8)) | NUMBERS,
    ),
    "cnn": Sized(
        CNN,
        {"B": (1, 16)},
        weights(w=(8, 3, 3, 3), b=(8,), dw=(8, 1, 3, 3), pw=(6, 8, 1, 1), v=(6, 5), c=(5,)),
    ),
    "images": Sized(
        IMAGES, {"B": (1, 2), "Y": (4, 9), "X": (4, 11)}, weights(w=(4, 2, 3, 3), b=(4,))
    ),
    "masked": Sized(MASKED, {"B": (1, 2), "S": (1, 5), "T": (1, 40), "P": (1, 3)}),
    "windows": Sized(WINDOWS, {"B": (1, 2), "Y": (1, 9), "X": (2, 8)}),
    "turned": Sized(
        "g (float[N,2,3] x, int64[2] s, float[6,4] w) => (float[N,4] y, float[M,2] z) "
        "{ t = Transpose<perm=[0,2,1]>(x) r = Reshape(t, s) y = MatMul(r, w) "
        "u = Transpose<perm=[2,0,1]>(x) two = Constant<value_ints=[-1,2]>() z = Reshape(u, two) }",
        {"N": (1, 7)},
        {"s": np.array([0, 6])} | weights(w=(6, 4)),
    ),
    "padded": Sized(
        PADDED,
        {"N": (1, 7)},
        {
            "across": np.array([0, 1, 0, 0]),
            "less": np.array([-1, 0, 0, 0]),
            "more": np.array([2, 0, 3, 0]),
        },
    ),
    "sampled": Sized(SAMPLED, {"T": (4, 7), "B": (1, 4), "C": (1, 3)}),
    "spectra": Sized(SPECTRA, {"B": (1, 4), "C": (1, 3)}),
    "frames of a signal": Sized(
        "g (float[B,N,1] x, int64 step, float[4] w) => (float[B,F,3] y, float[B,G,8,2] z) "
        "<int64 length = {8}, int64[1] a = {-1}> { s = STFT(x, step, w) q = Mul(s, s) "
        "y = ReduceSum<keepdims=0>(q, a) z = STFT<onesided=0>(x, step, , length) }",
        {"B": (1, 3), "N": (8, 20)},
        weights(w=(4,)) | {"step": np.array(3)},
    ),
    "frames of rows": Sized(
        "g (float[B,N] x, float[8] w) => (float[G,F,5] y) <int64 step = {3}, int64[1] a = {-1}, "
        'int64[4] p = {1,4,1,3}> { e = Pad<mode="edge">(x, p) s = STFT(e, step, w) '
        "q = Mul(s, s) y = ReduceSum<keepdims=0>(q, a) }",
        {"B": (1, 3), "N": (8, 20)},
        weights(w=(8,)),
    ),
    "moves": Sized(
        MOVES,
        {"B": (1, 3), "S": (1, 9), "P": (2, 5)},
        weights(table=(9, 4))
        | {
            name: np.array([value])
            for name, value in (("from", -1), ("to", -100), ("axis", 1), ("step", -2), ("last", 2))
        },
    ),
}


@pytest.fixture(scope="module")
def library() -> SizedLibrary:
    return SizedLibrary(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_run_at_any_sizes_within_the_bounds_is_right(library: SizedLibrary, name: str) -> None:
    for sizes in MODELS[name].trials():
        library.check(name, sizes)


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_sizes_that_hypothesis_draws(library: SizedLibrary, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(MODELS)))
    bounds = MODELS[name].bounds
    sizes = {dim: data.draw(st.integers(*ends), label=dim) for dim, ends in bounds.items()}
    library.check(name, sizes, seed=data.draw(st.integers(0, 9)))


@pytest.mark.parametrize("size", [0, 17])
def test_sizes_beyond_the_bounds_are_refused(library: SizedLibrary, size: int) -> None:
    with pytest.raises(UsageError, match=f"B={size} is not from 1 to 16") as caught:
        library.run("cnn", np.zeros((size, 3, 12, 12), np.float32))
    assert caught.value.code == "E670"


def test_inputs_that_disagree_are_refused(library: SizedLibrary) -> None:
    x, past = np.zeros((2, 3, 4), np.float32), np.zeros((3, 2, 4), np.float32)
    with pytest.raises(UsageError, match="E670 input 'past'"):
        library.run("moves", x, past, np.zeros((2, 3), np.int64))


DOUBLED = "g (float[N] x) => (float[N] y) { y = Add(x, x) }"


def test_the_function_checks_sizes_and_pointers(tmp_path) -> None:
    """It returns the error codes of the header, and writes nothing."""
    artifact = Sized(DOUBLED, {"N": (2, 4)}).compile()
    run = ctypes.CDLL(str(build(artifact.files, tmp_path))).model_run
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    arena = np.zeros(256, np.uint8)
    start = arena.ctypes.data + -arena.ctypes.data % 64
    inputs, outputs = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(y.ctypes.data)
    for size, status in ((1, 3), (5, 3), (-1, 3), (3, 0)):
        told = (ctypes.c_ssize_t * 1)(size)
        assert run(inputs, outputs, ctypes.c_void_p(start), told) == status
    assert run(inputs, outputs, ctypes.c_void_p(start), None) == 1
    assert y.tolist() == [2, 2, 2, 0]


def test_negative_result_sizes_are_refused() -> None:
    """Windows of 8 elements with a stride of 3, over four elements."""
    windows = (
        "g (float[1,1,N] x) => (float[1,1,F] y) { y = MaxPool<kernel_shape=[8],strides=[3]>(x) }"
    )
    frames = (
        "g (float[1,N] x, float[8] w) => (float[1,F,5,2] y) <int64 step = {3}> "
        "{ y = STFT(x, step, w) }"
    )
    four, eight = np.ones((1, 4), np.float32), np.ones(8, np.float32)
    for graph, inputs in ((windows, [four[None]]), (frames, [four, eight])):
        run = Sized(graph, {"N": (1, 20)}).compile().load()
        with pytest.raises(UsageError, match="E670"):
            run(*inputs)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_cropped_results_may_be_empty(mode: str) -> None:
    graph = (
        "g (float[N,3] x) => (float[M,5] y) <int64[4] p = {-2,1,0,1}> "
        f'{{ y = Pad<mode="{mode}">(x, p) }}'
    )
    run = Sized(graph, {"N": (1, 7)}).compile().load()
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert run(x)[0].tolist() == np.pad(x[2:], ((0, 0), (1, 1)), mode).tolist()
    assert run(x[:2])[0].shape == (0, 5)
    with pytest.raises(UsageError, match="E670"):
        run(x[:1])


def test_misfitting_sizes_are_refused_before_inputs_are_read() -> None:
    """The product reads as many rows of ``w`` as ``x`` has columns."""
    graph = "g (float[2,N] x, float[M,3] w) => (float[2,3] y) { y = MatMul(x, w) }"
    run = Sized(graph, {"N": (1, 9), "M": (1, 9)}).compile().load()
    x, w = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32)
    assert run(x, w)[0].tolist() == [[4, 4, 4]] * 2
    with pytest.raises(UsageError, match="E670"):
        run(x, w[:3])


def test_the_header_says_the_bounds() -> None:
    header = Sized(DOUBLED, {"N": (2, 4)}).compile().files["model.h"].decode()
    told = dict(re.findall(r"^#define MODEL_(\w+) (\S+)", header, re.M))
    assert (told["SIZES"], told["SIZE0_MIN"], told["SIZE0_MAX"]) == ("1", "2", "4")
    assert (told["INPUT0_BYTES"], told["INPUT0_SHAPE"]) == ("16", "{4}")
    assert "/*   0: x float[N] */" in header
    assert "const ptrdiff_t *sizes);" in header


def test_a_folder_is_opened_again_and_verified(tmp_path) -> None:
    sized = Sized(DOUBLED, {"N": (2, 4)})
    sized.compile().save(tmp_path)
    smelt.verify(sized.model, tmp_path, dims={"N": (2, 3, 4)}).check()


@pytest.mark.parametrize("bounds", [(0, 0), (5, 4), (-3, 2)])
def test_bounds_that_are_none(bounds: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="E633"):
        Sized(DOUBLED, {"N": bounds}).compile()


def test_a_name_that_no_dim_has() -> None:
    with pytest.raises(UsageError, match="E633 no input or output has a dim called 'M'"):
        Sized(DOUBLED, {"M": (1, 4)}).compile()


def test_a_dim_without_bounds_is_refused() -> None:
    two = "g (float[N,M] x) => (float[N,M] y) { y = Add(x, x) }"
    with pytest.raises((SmeltError, ErrorList), match="E401"):
        Sized(two, {"N": (1, 4)}).compile()


def test_a_size_that_no_run_can_solve_is_refused() -> None:
    model = text.parse("g (float[N] x) => (float[N] y) { y = Add(x, x) }", 18)
    for value in (*model.graph.inputs, *model.graph.outputs):
        value.shape = ir.Shape([ir.SymbolicDim("N*N")])
    with pytest.raises(SmeltError, match="E411 the size N\\*N of input 'x'"):
        smelt.compile(model, target="c", dims={"N": (1, 4)})


def test_memory_is_planned_for_the_largest_run() -> None:
    static = smelt.compile(MODELS["cnn"].model, target="c", dims={"B": 16})
    open_ = MODELS["cnn"].compile()
    assert open_.plan.memory.arena_bytes == static.plan.memory.arena_bytes


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_size_within_the_bounds(library: SizedLibrary, name: str) -> None:
    bounds = MODELS[name].bounds
    grids = np.meshgrid(*(np.arange(low, high + 1) for low, high in bounds.values()))
    for drawn in np.stack([grid.reshape(-1) for grid in grids], axis=1):
        library.check(name, dict(zip(bounds, map(int, drawn), strict=True)))


def test_the_model_keeps_its_symbols() -> None:
    model = text.parse(DOUBLED, 18)
    artifact = smelt.compile(model, target="c", dims={"N": (2, 4)})
    assert str(artifact.model.graph.outputs[0].shape) == "[N]"
