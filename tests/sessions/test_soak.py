"""A session that runs for long needs no more memory than at first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import smelt.onnxruntime as ort

RUNS, CLIENTS, LENGTHS = 100_000, 4, 200
MODEL = (
    '<opset_import: ["": 20], ir_version: 10> '
    "g (float[L,8] x) => (float[L,8] y, float total) { y = Softmax(x) total = ReduceSum<keepdims=0>(y) }"
)
MOST_GROWTH = 8 << 20
"""Bytes; each run makes results of 3 KiB on average."""


def _resident_bytes() -> int:
    status = Path("/proc/self/status").read_text("ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) << 10


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is read from /proc")
def test_memory_is_flat_over_many_runs_of_many_lengths(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SMELT_CACHE", str(tmp_path))
    options = ort.SessionOptions()
    options.add_session_config_entry("smelt.engine", "native")
    session = ort.InferenceSession(onnx.parser.parse_model(MODEL).SerializeToString(), options)
    inputs = [np.ones((length, 8), np.float32) for length in range(1, LENGTHS + 1)]

    def runs(count: int) -> None:
        for number in range(count):
            x = inputs[number % LENGTHS]
            y, total = session.run(None, {"x": x})
            assert y.shape == x.shape
            assert abs(total - len(x)) < 1e-3

    runs(10 * LENGTHS)
    before = _resident_bytes()
    with ThreadPoolExecutor(CLIENTS) as clients:
        for client in [clients.submit(runs, RUNS // CLIENTS) for _ in range(CLIENTS)]:
            client.result()
    assert _resident_bytes() - before < MOST_GROWTH
