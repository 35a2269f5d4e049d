"""``threads=``: several threads compute costly steps, with the bits of one thread."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.targets.base import Artifact, Plan
from smelt.targets.host import host
from smelt.targets.host.options import Options
from smelt.targets.host.saved import open_folder

ROWS = """g (float[257,96] x, float[96,130] w, float[130] b) => (float[257,130] y) {
    a = MatMul(x, w)
    c = Add(a, b)
    d = Relu(c)
    y = Softmax(d)
}"""
DOUBLES = "g (double[{m},200] x, double[200,64] w) => (y) {{ a = MatMul(x, w) y = Tanh(a) }}"


def made(graph: str, threads: int, engine: str = "native") -> Artifact:
    plan = Plan(text.parse(graph), Options(engine=engine, threads=threads))
    host.schedule(plan)
    host.allocate(plan)
    return host.emit(plan)


def inputs_of(artifact: Artifact, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    values = artifact.model.graph.inputs
    return [rng.standard_normal(v.shape.numpy()).astype(v.dtype.numpy()) for v in values]


def is_compiled(artifact: Artifact) -> bool:
    return artifact.opened()._fast is not None


@pytest.mark.parametrize("threads", [2, 3])
def test_bits_are_those_of_one_thread(threads: int) -> None:
    one, several = made(ROWS, 1), made(ROWS, threads)
    inputs = inputs_of(one)
    assert one(*inputs)[0].tobytes() == several(*inputs)[0].tobytes()
    assert is_compiled(several)


@pytest.mark.slow  # compiles C twice for each
@pytest.mark.parametrize(
    "graph",
    [
        "g (float[501,600] x, float[600] w) => (float[501] y) { y = MatMul(x, w) }",
        "g (float[64,30,30] x) => (y, t) { y, t = smelt.Geqrf(x) }",
        "g (float[70,30,30] x) => (y, p, q) { y, p, q = smelt.LU(x) }",
    ],
)
def test_rows_and_batches_are_sharded(graph: str) -> None:
    one, several = made(graph, 1), made(graph, 3)
    inputs = inputs_of(one)
    for mine, theirs in zip(one(*inputs), several(*inputs), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    assert is_compiled(several)


@pytest.mark.parametrize("m", [301, 16, 33])
def test_products_by_blas_are_sharded_by_rows(m: int) -> None:
    artifact = made(DOUBLES.format(m=m), 3)
    x, w = inputs_of(artifact)
    np.testing.assert_allclose(artifact(x, w)[0], np.tanh(x @ w), rtol=1e-12, atol=1e-13)
    assert is_compiled(artifact)


def test_concurrent_calls_get_their_own_results() -> None:
    artifact = made(ROWS, 2)
    inputs = [inputs_of(artifact, seed) for seed in range(4)]
    expected = [artifact(*each)[0] for each in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            if artifact(*inputs[number])[0].tobytes() != expected[number].tobytes():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:os.fork:RuntimeWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    artifact = made(ROWS, 3)
    inputs = inputs_of(artifact)
    expected = artifact(*inputs)[0].tobytes()
    ours, theirs = multiprocessing.get_context("fork").Pipe()

    def child() -> None:
        theirs.send([artifact(*inputs)[0].tobytes() == expected for _ in range(5)])

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    try:
        assert ours.poll(60)
        assert ours.recv() == [True] * 5
    finally:
        process.kill()
        process.join()
    assert artifact(*inputs)[0].tobytes() == expected


def test_without_a_pool_shards_run_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smelt.runtime.jit.library_call.parallel_for", lambda: None)
    one, several = made(ROWS, 1), made(ROWS, 2)
    inputs = inputs_of(one)
    assert one(*inputs)[0].tobytes() == several(*inputs)[0].tobytes()


def test_pickles_and_folders_keep_the_number(tmp_path: Path) -> None:
    artifact = smelt.compile(text.parse(ROWS), target="host", engine="native", threads=2)
    inputs = inputs_of(artifact)
    (expected,) = artifact(*inputs)
    again = pickle.loads(pickle.dumps(artifact))
    assert again.plan.options.threads == 2
    assert again(*inputs)[0].tobytes() == expected.tobytes()
    artifact.save(tmp_path / "out")
    saved = open_folder(tmp_path / "out")
    assert saved is not None
    runner = saved.load()
    assert runner(*inputs)[0].tobytes() == expected.tobytes()
    assert runner.compiled.threads == 2


@pytest.mark.parametrize("threads", [0, -1, 65])
def test_the_number_is_checked(threads: int) -> None:
    with pytest.raises(UsageError, match=f"E660 {threads} is not a value of the option threads"):
        Options(threads=threads)
