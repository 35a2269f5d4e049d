"""Later versions of a model are compared with the results of its source."""

from __future__ import annotations

import numpy as np

from smelt.check.baseline import Baseline
from smelt.ir import text
from smelt.passes.base import EXACT
from smelt.runtime import onnxruntime


def test_a_later_version_runs_where_the_source_ran(monkeypatch) -> None:
    """ONNX Runtime has no ArgMax of uint64, and its other kernels round differently from the
    reference evaluator.
    """
    graph = "g (float[64] x, uint64[4] a) => (float[64] y, int64[1] z)"
    source = text.parse(f"{graph} {{ y = Sigmoid(x) z = ArgMax(a) }}")
    later = text.parse(f"{graph} {{ y = Sigmoid(x) b = Cast<to=7>(a) z = ArgMax(b) }}")
    baseline = Baseline(source)

    def other_kernels(runner: object, *inputs: np.ndarray) -> None:
        raise AssertionError("the source ran in the reference evaluator")

    monkeypatch.setattr(onnxruntime.OnnxRuntime, "__call__", other_kernels)
    assert not baseline.judge(later, EXACT)
