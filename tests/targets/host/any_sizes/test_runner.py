"""The host runs models whose sizes depend on data."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from sizes_of_data import FLOW, FOUND, OPEN, TOLD, Feeds, floats, ints, number

import smelt
from smelt.errors import ErrorList, UsageError
from smelt.ir import text
from smelt.runtime.runner import run

ALL = FOUND | TOLD | OPEN | FLOW


def agrees(artifact, source: str, feeds: Feeds) -> None:
    """Assert that calls of ``artifact``, at sizes that differ from call to call, return what ONNX
    Runtime returns.
    """
    model = text.parse(source)
    for feed in (*feeds, *feeds):
        kept = [np.array(array) for array in feed]
        results = artifact(*feed)
        for result, wanted in zip(results, run(model, feed), strict=True):
            assert isinstance(wanted, np.ndarray)
            assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
            rtol = 1e-3 if result.dtype == np.float16 else 1e-5
            np.testing.assert_allclose(result, wanted, rtol=rtol, atol=1e-6)
            assert not any(np.shares_memory(result, given) for given in feed)
        for given, before in zip(feed, kept, strict=True):
            np.testing.assert_array_equal(given, before)


def compiled(source: str, engine: str = "numpy"):
    return smelt.compile(text.parse(source), target="host", engine=engine)


@pytest.mark.parametrize("name", ALL)
def test_result_sizes_follow_from_the_data(name: str) -> None:
    source, feeds = ALL[name]
    agrees(compiled(source), source, feeds)


@pytest.mark.parametrize("name", ["the best of the boxes", "a state that grows"])
def test_parts_of_known_sizes_are_compiled(name: str) -> None:
    source, feeds = ALL[name]
    agrees(compiled(source, "native"), source, feeds)


def test_a_saved_program_runs(tmp_path: Path) -> None:
    source, feeds = FOUND["a product of what is found"]
    compiled(source).save(tmp_path)
    agrees(smelt.load_artifact(tmp_path), source, feeds)


BATCHED = (
    "g (float[B,D] s, float[B,T,D] x) => (float[B,D] o, float[B,T,D] y) "
    "{ o, y = Scan<num_scan_inputs=1, body = b (float[D] a, float[D] i) => (float[D] c, float[D] d) "
    "{ c = Add(a, i) d = Identity(c) }>(, s, x) }"
)


def test_the_batched_scan_of_opset_8() -> None:
    s, x = floats(2, 3), floats(2, 4, 3)
    model = text.parse(BATCHED, opset=8)
    last, rows = smelt.compile(model, target="host", engine="numpy")(s, x)
    np.testing.assert_allclose(rows, s[:, None] + np.cumsum(x, 1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, rows[:, -1])


def test_misfitting_sizes_are_reported() -> None:
    artifact = compiled(
        "g (float[N] x, float[N] y, bool[N] c) => (float[M] z) "
        "{ s = Add(x, y) z = Compress<axis=0>(s, c) }"
    )
    with pytest.raises(UsageError, match="does not fit") as caught:
        artifact(floats(3), floats(2), np.ones(3, bool))
    assert caught.value.code == "E670"
    with pytest.raises(UsageError) as caught:
        artifact(floats(3), floats(3).astype(np.float64), np.ones(3, bool))
    assert caught.value.code == "E671"


def test_scan_outputs_with_rows_of_several_sizes_are_refused() -> None:
    artifact = compiled(
        "g (int64 n) => (int64[N,M] y) { t = Constant<value=bool {1}>() y = Loop(n, t) <body = "
        "b (int64 i, bool c) => (bool d, int64[K] r) { d = Identity(c) z = Constant<value_int=0>() "
        "o = Constant<value_int=1>() r = Range(z, i, o) }> }"
    )
    assert artifact(number(1))[0].shape == (1, 0)
    with pytest.raises(UsageError, match="shapes") as caught:
        artifact(number(2))
    assert caught.value.code == "E670"


REFUSED = {
    "an operator": (
        "g (float[N] x, bool[N] c) => (float[M] y) { z = Compress<axis=0>(x, c) y = Bernoulli(z) }"
    ),
    "of known sizes": (
        "g (float[2,2] x, bool[2] c) => (float[M,2] y, float[2,2] e) { y = Compress<axis=0>(x, c) "
        'e = Einsum<equation="ij,jk,kl,lm,mn->q">(x, x, x, x, x) }'
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_models_unsupported_at_all_sizes_are_refused_before_a_run(name: str) -> None:
    with pytest.raises((ErrorList, smelt.SmeltError)):
        compiled(REFUSED[name])


def test_a_branch_that_is_not_taken_needs_no_program() -> None:
    artifact = compiled(
        "g (float[N] x, int64[1] s, bool c) => (float[M] y) { y = If (c) "
        "<then_branch = t () => (float[A] a) { a = Reshape(x, s) }, "
        "else_branch = e () => (float[N] b) { b = Neg(x) }> }"
    )
    (y,) = artifact(floats(3), ints(7), np.array(False))  # 3 elements are no 7
    np.testing.assert_array_equal(y, -floats(3))


SELECTED = (
    "g (float[N,4] x, bool[N] c, float[4,4] w) => (float[M,4] y) "
    "{ t = MatMul(x, w) s = Compress<axis=0>(t, c) y = Relu(s) }"
)


def test_the_report_counts_parts_and_instructions() -> None:
    report = compiled(SELECTED).report
    assert (report["parts"], report["instructions"]) == (3, 2)


def test_concurrent_calls_get_their_own_results() -> None:
    artifact, w = compiled(SELECTED), floats(4, 4)
    wrong: list[int] = []

    def calls(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(60):
            rows = int(rng.integers(1, 40))
            x, c = rng.standard_normal((rows, 4)).astype(np.float32), rng.random(rows) < 0.5
            (y,) = artifact(x, c, w)
            if not np.allclose(y, np.maximum(x @ w, 0)[c], atol=1e-4):
                wrong.append(rows)

    threads = [threading.Thread(target=calls, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
