"""Regions of a model run as our own C inside ONNX Runtime, and compute the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.native_regions import compile as compiling
from smelt.native_regions.artifact import NativeArtifact
from smelt.runtime.onnxruntime import OnnxRuntime

BLOCK = """g (float[B,S,8] x, float[8,16] w, bool[S] m) => (float[B,S,16] y, bool[B,S] z, float t)
    <float one = {1}> {
    p = MatMul(x, w) q = Relu(p) y = Softmax(q) a = ArgMax<axis=-1, keepdims=0>(y)
    b = Cast<to=9>(a) z = And(b, m) s = ReduceSum<keepdims=0>(q) t = Div(s, one) }"""
AROUND = """g (float[6] x) => (float[6] y) {
    a = Relu(x) b = Exp(a) c = Add(b, x) d = Mul(c, c)
    u, i, j, k = Unique<sorted=1>(d) n = Shape(u)
    r = Cast<to=1>(n) e = Sub(d, r) f = Tanh(e) g = Sub(f, e) y = Mul(g, f) }"""
HEAVY = "g (float[96,128] x, float[128,192] w) => (float[96,192] y) { a = MatMul(x, w) b = Relu(a) c = Neg(b) d = Abs(c) y = Exp(d) }"
BOUNDS = {"B": (1, 4), "S": (1, 6)}


def compiled(graph: str, dims: dict[str, object] | None, threads: int = 1) -> NativeArtifact:
    artifact = smelt.compile_with_regions(
        text.parse(graph, 18), dims=dims, threads=threads, measure=False
    )
    assert isinstance(artifact, NativeArtifact)
    return artifact


def arrays(graph: str, **sizes: int) -> list[np.ndarray]:
    """Random inputs of ``graph``."""
    rng = np.random.default_rng(0)
    values = []
    for value in text.parse(graph, 18).graph.inputs:
        shape = [dim if isinstance(dim, int) else sizes[str(dim)] for dim in value.shape]
        array = rng.normal(size=shape)
        values.append(array > 0 if value.dtype.name == "BOOL" else array.astype(np.float32))
    return values


def check_same(run: Callable[..., tuple], graph: str, **sizes: int) -> None:
    """``run`` gives what the source gives in ONNX Runtime."""
    inputs = arrays(graph, **sizes)
    for got, expected in zip(
        run(*inputs), OnnxRuntime(text.parse(graph, 18))(*inputs), strict=True
    ):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def block() -> NativeArtifact:
    return compiled(BLOCK, BOUNDS)


@pytest.mark.parametrize("sizes", [{"B": 1, "S": 1}, {"B": 3, "S": 5}, {"B": 4, "S": 6}])
def test_a_region_computes_the_same_at_all_sizes_within_the_bounds(block, sizes) -> None:
    assert block.report["native regions"]["regions"] == 1
    check_same(block, BLOCK, **sizes)


@pytest.mark.parametrize("sizes", [{"B": 5, "S": 1}, {"B": 1, "S": 7}])
def test_other_sizes_are_refused_with_the_bounds(block, sizes) -> None:
    with pytest.raises(Exception, match=r"\[1\.\.4, 1\.\.6, 8\].*other bounds"):
        block(*arrays(BLOCK, **sizes))


def test_dims_of_one_name_must_agree(block) -> None:
    x, w, _ = arrays(BLOCK, B=2, S=3)
    session = block.session()
    with pytest.raises(Exception, match="region0: input 2 does not have the shape"):
        session.run(None, {"x": x, "w": w, "m": np.ones(4, bool)})


def test_one_session_serves_several_threads(block) -> None:
    session, inputs = block.session(threads=1), arrays(BLOCK, B=4, S=6)
    feeds = dict(zip("xwm", inputs, strict=True))
    [expected, *_] = session.run(None, feeds)
    with ThreadPoolExecutor(4) as pool:
        for got, *_ in pool.map(lambda _: session.run(None, feeds), range(40)):
            np.testing.assert_array_equal(got, expected)


def test_nodes_that_c_lacks_stay_between_two_regions() -> None:
    artifact = compiled(AROUND, None)
    report = artifact.report["native regions"]
    assert (report["regions"], report["nodes"]) == (2, 9)
    assert report["nodes left"] >= 1
    check_same(artifact, AROUND)


def test_kernels_are_shared_by_the_threads_of_the_session_with_equal_bits() -> None:
    inputs = arrays(HEAVY)
    results = [compiled(HEAVY, None, threads=threads) for threads in (1, 2)]
    assert b"_run_parallel" in results[1].files["model.native.so"]
    feeds = dict(zip("xw", inputs, strict=True))
    one, two = (
        artifact.session(threads=threads).run(None, feeds)[0]
        for threads, artifact in enumerate(results, 1)
    )
    np.testing.assert_array_equal(one, two)
    check_same(results[1], HEAVY)


def test_a_saved_folder_opens_with_its_regions_and_without_them_elsewhere(block, tmp_path) -> None:
    block.save(tmp_path / "here")
    opened = smelt.load_artifact(tmp_path / "here")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_same(opened, BLOCK, B=2, S=3)
    block.save(tmp_path / "there")
    (tmp_path / "there" / "model.native.so").write_bytes(b"for another system")
    with pytest.warns(UserWarning, match=r"model\.native\.so does not load.*runs model\.onnx"):
        check_same(
            smelt.load_artifact(tmp_path / "there"), BLOCK, B=5, S=9
        )  # beyond the bounds of the regions


@pytest.mark.parametrize(
    ("ratios", "is_kept"),
    [
        ([0.9], True),
        ([0.8, 1.01], True),
        ([0.99, 0.99], False),
        ([0.5, 1.1], False),
        ("E321", False),
    ],
)
def test_regions_are_kept_only_where_they_are_faster(ratios, is_kept, monkeypatch) -> None:
    monkeypatch.setattr(compiling, "_ratios", lambda *_: ratios)
    artifact = smelt.compile_with_regions(text.parse(BLOCK, 18), dims=BOUNDS)
    assert isinstance(artifact, NativeArtifact) == is_kept
    assert ("model.native.onnx" in artifact.files) == is_kept
    assert artifact.plan.facts["native regions"].startswith("left out") != is_kept


def test_measured_ratios_are_in_the_report(monkeypatch) -> None:
    monkeypatch.setattr(compiling, "SECONDS", 0.05)
    artifact = smelt.compile_with_regions(text.parse(HEAVY, 18))
    [ratio] = artifact.report["native regions"]["ratios"]
    assert 0.01 < ratio < 100


def test_open_sizes_without_bounds_stay_with_onnx_runtime() -> None:
    artifact = smelt.compile_with_regions(text.parse(BLOCK, 18))
    assert "need bounds" in artifact.plan.facts["native regions"]
    check_same(artifact, BLOCK, B=2, S=3)


def test_a_pipeline_that_changes_the_interface_changes_it_for_the_regions_too() -> None:
    graph = """g (int64[4] i) => (float[4,2] y) <float[3,2] t = {1, 2, 3, 4, 5, 6}> {
        a = Gather(t, i) b = Exp(a) c = Neg(b) d = Mul(c, a) y = Add(d, b) }"""
    pipeline = "default,narrow-integers{inputs=true}"
    artifact = smelt.compile_with_regions(text.parse(graph, 18), pipeline=pipeline, measure=False)
    [port] = artifact.session().get_inputs()
    assert port.type == "tensor(int32)"
    [y] = artifact.session().run(None, {"i": np.array([0, 1, 2, 1], np.int32)})
    expected = OnnxRuntime(text.parse(graph, 18))(np.array([0, 1, 2, 1]))[0]
    np.testing.assert_allclose(y, expected, rtol=1e-5)


def test_weights_of_few_bits_are_refused() -> None:
    with pytest.raises(UsageError, match="weights='int4'"):
        smelt.compile_with_regions(text.parse(HEAVY, 18), weights="int4")


def test_regions_of_a_model_that_fails_on_random_inputs_are_left_out(monkeypatch) -> None:
    graph = """g (float[4] x, int64[2] s) => (float[A,B] y) {
        a = Relu(x) b = Exp(a) c = Neg(b) d = Mul(c, a) y = Reshape(d, s) }"""
    wrong_shape = [np.ones(4, np.float32), np.array([3, 3])]
    monkeypatch.setattr(compiling, "random_inputs", lambda *_: wrong_shape)
    artifact = smelt.compile_with_regions(text.parse(graph, 18))
    assert "made-up inputs (E321" in artifact.plan.facts["native regions"]
    assert not isinstance(artifact, NativeArtifact)
