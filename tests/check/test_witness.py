"""What a source computed, held against later versions of it."""

from __future__ import annotations

import numpy as np

from smelt.check.witness import Witness
from smelt.ir import text
from smelt.passes.base import EXACT
from smelt.runtime import onnxruntime


def test_a_later_version_runs_where_the_source_ran(monkeypatch) -> None:
    """ONNX Runtime has no Where of booleans; its other kernels round as they like."""
    graph = "g (float[64] x, bool[N] a, bool[N] b) => (float[64] y, bool[N] z)"
    source = text.parse(f"{graph} {{ y = Sigmoid(x) z = Where(a, a, b) }}")
    later = text.parse(f"{graph} {{ y = Sigmoid(x) z = Or(a, b) }}")
    witness = Witness(source)

    def other_kernels(runner: object, *inputs: np.ndarray) -> None:
        raise AssertionError("the source ran in the reference evaluator")

    monkeypatch.setattr(onnxruntime.OnnxRuntime, "__call__", other_kernels)
    assert not witness.judge(later, EXACT)
