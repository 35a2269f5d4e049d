"""After a few sets of shapes, one compiled program of open sizes runs all others."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest
from small_models import HEADER

import smelt
from smelt.errors import InvalidModel, UsageError
from smelt.ir import text
from smelt.runtime.jit.open_caller import OpenCaller
from smelt.targets.base import Artifact
from smelt.targets.host import compiled
from smelt.targets.host.open_sizes import OpenSizes
from smelt.targets.host.static_programs import library_of

MODELS = {
    "attention": "g (float[B,S,8] x) => (float[B,S,8] y) <int64[3] p = {0, 2, 1}> {"
    " t = Transpose<perm=[0,2,1]>(x) m = MatMul(x, t) q = Softmax(m) y = MatMul(q, x) }",
    "sizes in results": "g (float[N,3] x, float[M,3] y) => (float[T,3] z, int64[1] n) {"
    " z = Concat<axis=0>(x, y) n = Shape<end=1>(z) }",
    "a lookup": "g (float[V,4] t, int64[N] i) => (float[N,4] y) { a = Gather<axis=0>(t, i)"
    " y = Exp(a) }",
    "integers": "g (int32[N,M] x) => (int32[M,N] y) { a = Transpose(x) y = Mul(a, a) }",
}
SIZES = {
    "attention": [((b, s, 8),) for b, s in ((1, 3), (2, 5), (1, 7), (3, 1), (2, 4), (1, 13))],
    "sizes in results": [((n, 3), (m, 3)) for n, m in ((1, 1), (2, 5), (4, 1), (3, 3), (7, 6))],
    "a lookup": [((v, 4), (n,)) for v, n in ((5, 1), (4, 9), (6, 2), (9, 9), (4, 3))],
    "integers": [((n, m),) for n, m in ((1, 1), (5, 3), (17, 2), (2, 33), (8, 8))],
}
TYPES = {"float": np.float32, "int64": np.int64, "int32": np.int32}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "FEW", 1)


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, tuple[int, int]]]:
    """Record the bounds of each program of open sizes that is compiled."""
    bounds: list[dict[str, tuple[int, int]]] = []
    compile_ = OpenSizes.compile

    def recorded(self, library_of):
        program = compile_(self, library_of)
        bounds.append(dict(program.fit.bounds) if program is not None else {})
        return program

    monkeypatch.setattr(OpenSizes, "compile", recorded)
    return bounds


def _artifact(name: str, engine: str = "native", **options: object) -> Artifact:
    source = text.parse(HEADER + MODELS.get(name, name))
    return smelt.compile(source, target="host", engine=engine, **options)


def _arrays(artifact: Artifact, shapes) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    dtypes = [value.dtype.numpy() for value in artifact.model.graph.inputs]
    return [
        rng.integers(0, 4, shape).astype(dtype) for shape, dtype in zip(shapes, dtypes, strict=True)
    ]


def _compiled(artifact: Artifact) -> compiled.Compiled:
    found = artifact.opened().compiled
    assert found is not None
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_numpy_at_all_shapes(name: str, threads: int, compiles) -> None:
    ours, numpy = _artifact(name, threads=threads), _artifact(name, "numpy")
    for shapes in SIZES[name] * 2:
        arrays = _arrays(ours, shapes)
        for result, expected in zip(ours(*arrays), numpy(*arrays), strict=True):
            assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    assert len(_compiled(ours)._callers) == 1
    assert isinstance(_compiled(ours).open_caller, OpenCaller)
    assert 1 <= len(compiles) <= 4


def test_shapes_within_the_bounds_compile_nothing(compiles) -> None:
    artifact = _artifact("attention")
    artifact(*_arrays(artifact, ((1, 4, 8),)))
    artifact(*_arrays(artifact, ((2, 60, 8),)))
    assert compiles == [{"B": (1, 4), "S": (1, 128)}]
    for length in range(1, 129, 9):
        (y,) = artifact(*_arrays(artifact, ((1 + length % 4, length, 8),)))
        assert y.shape == (1 + length % 4, length, 8)
    assert len(compiles) == 1
    artifact(*_arrays(artifact, ((1, 129, 8),)))
    assert compiles[1:] == [{"B": (1, 4), "S": (1, 512)}]


def test_it_is_compiled_in_the_background(compiles) -> None:
    artifact = _artifact("attention", "auto")
    for length in (3, 5, 7):
        artifact(*_arrays(artifact, ((1, length, 8),)))
    assert artifact.ready(None)
    assert len(compiles) == 1
    x = _arrays(artifact, ((1, 6, 8),))
    assert isinstance(_compiled(artifact).caller(((1, 6, 8),)), OpenCaller)
    np.testing.assert_allclose(artifact(*x)[0], _artifact("attention", "numpy")(*x)[0], rtol=1e-5)


def test_misfitting_shapes_are_refused() -> None:
    artifact = _artifact("attention")
    for length in (3, 4, 5):
        artifact(*_arrays(artifact, ((1, length, 8),)))
    for array, code in (
        (np.ones((1, 4, 9), np.float32), "E670"),
        (np.ones((4, 8), np.float32), "E670"),
        (np.ones((1, 4, 8)), "E671"),
        (None, "E671"),
    ):
        with pytest.raises(UsageError) as error:
            artifact(array)
        assert error.value.code == code
    lookup = _artifact("a lookup")
    table = np.ones((5, 4), np.float32)
    for count in (1, 2, 3):
        lookup(table, np.zeros(count, np.int64))
    with pytest.raises(InvalidModel, match="out of range"):
        lookup(table, np.array([0, 5, 1, 2]))


def test_empty_inputs_run_by_numpy(compiles) -> None:
    artifact = _artifact("attention")
    for length in (3, 4, 0, 0, 5):
        (y,) = artifact(*_arrays(artifact, ((2, length, 8),)))
        assert y.shape == (2, length, 8)
    assert len(compiles) == 1


@pytest.mark.parametrize("least", [0, 3])
def test_a_program_for_sizes_that_are_known_ahead(compiles, least: int) -> None:
    """Its least size is 0 where an empty input is among those sizes, else 1."""
    artifact = _artifact("attention")
    assert _compiled(artifact).compile_for(((2, least, 8),), ((2, 5, 8),))
    (bounds,) = compiles
    assert bounds["S"][0] == min(least, 1)
    assert bounds["B"][0] == 1
    for length in (least, 4):
        (y,) = artifact(*_arrays(artifact, ((2, length, 8),)))
        assert y.shape == (2, length, 8)
    assert len(compiles) == 1


def test_arrays_that_are_not_dense_are_taken() -> None:
    artifact, numpy = _artifact("attention"), _artifact("attention", "numpy")
    for length in (3, 4, 5, 6):
        (x,) = _arrays(artifact, ((2, 8, length),))
        view = x.transpose(0, 2, 1)
        np.testing.assert_allclose(artifact(view)[0], numpy(view)[0], rtol=1e-5)


def test_a_model_that_needs_too_much_memory_has_one_program_for_each_shape(
    monkeypatch, compiles
) -> None:
    monkeypatch.setattr("smelt.targets.host.open_sizes.MOST_BYTES", 8)
    monkeypatch.setattr(compiled, "MOST_CALLERS", 3)
    artifact = _artifact("attention")
    for length in range(1, 7):
        artifact(*_arrays(artifact, ((1, length, 8),)))
    assert compiles == [{}]
    assert len(_compiled(artifact)._callers) == 3


def test_a_model_without_kernels_for_open_sizes_is_compiled_shape_by_shape(compiles) -> None:
    artifact = _artifact(
        "g (float[N] x) => (int64[1,K] y, float[N] z) { y = NonZero(x) z = Relu(x) }"
    )
    for length in (3, 4, 5, 6):
        x = np.arange(length, dtype=np.float32)
        y, z = artifact(x)
        np.testing.assert_array_equal(y, [range(1, length)])
        np.testing.assert_array_equal(z, x)


def test_constraints_on_sizes_are_checked() -> None:
    source = text.parse(HEADER + MODELS["attention"])
    source.metadata_props["smelt.size_constraints"] = "S % 2 == 0"
    artifact = smelt.compile(source, target="host", engine="native")
    for length in (2, 4, 6):
        artifact(np.ones((1, length, 8), np.float32))
    with pytest.raises(UsageError, match="E670"):
        artifact(np.ones((1, 5, 8), np.float32))


def _begun(length: int) -> tuple[OpenSizes, threading.Event]:
    """Return the sizes of "attention" whose C a thread compiles once the event is set."""
    go = threading.Event()
    sizes = OpenSizes(text.parse(HEADER + MODELS["attention"]), 1)
    sizes.note(((1, length, 8),), known=True)

    def library(source: str) -> ctypes.CDLL:
        assert go.wait(60)
        return library_of(source)

    assert sizes.begin(library)  # the compiler works
    return sizes, go


def test_a_program_that_a_thread_compiles_is_compiled_once() -> None:
    sizes, go = _begun(5)
    go.set()
    program = sizes.compile(pytest.fail)
    assert program is not None
    assert program.takes(((1, 5, 8),))
    assert not sizes.begin(pytest.fail)  # nothing is due


def test_larger_sizes_after_a_thread_began_are_compiled() -> None:
    sizes, go = _begun(5)
    sizes.note(((1, 40, 8),), known=True)
    program = sizes.compile(lambda source: library_of(source.text))
    go.set()
    assert program is not None
    assert program.takes(((1, 40, 8),))


def test_an_error_in_the_thread_is_raised_by_compile() -> None:
    sizes = OpenSizes(text.parse(HEADER + MODELS["attention"]), 1)
    sizes.note(((1, 5, 8),), known=True)

    def refuses(source: str) -> ctypes.CDLL:
        raise OSError(source[:0] + "the disk is full")

    assert not sizes.begin(refuses)
    with pytest.raises(OSError, match="the disk is full"):
        sizes.compile(pytest.fail)


def test_threads_have_workspaces_of_their_own() -> None:
    artifact, numpy = _artifact("attention"), _artifact("attention", "numpy")
    inputs = [_arrays(artifact, ((2, length, 8),)) for length in range(3, 43)]
    for arrays in inputs[:3]:
        artifact(*arrays)
    results: dict[int, np.ndarray] = {}

    def run(start: int) -> None:
        for number in range(start, len(inputs), 4):
            results[number] = artifact(*inputs[number])[0]

    threads = [threading.Thread(target=run, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, arrays in enumerate(inputs):
        np.testing.assert_allclose(results[number], numpy(*arrays)[0], rtol=1e-5, atol=1e-6)
