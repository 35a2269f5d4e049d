"""A sample of the node tests of ONNX, in Node: each passes or is refused with a code.

Other samples run by ``SEED=3 pytest``; the target c runs all of them over the same C.
"""

from __future__ import annotations

import os
import random
import warnings
from functools import cache

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from webassembly import needs_wasm

import smelt
from smelt.errors import SmeltError
from smelt.targets.wasm import wasm

COUNT = 60
ALWAYS = "test_resize_tf_crop_and_resize"
"""A case that clang 14 compiled wrong with its vectorizer of straight lines."""


@cache
def sample() -> list:
    """Some cases that the conventions of arrays cover: all values are tensors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    chosen = random.Random(int(os.environ.get("SEED", "0"))).sample(cases, COUNT)
    return [*chosen, *(case for case in cases if case.name == ALWAYS)]


def arrays(values) -> list[np.ndarray]:
    """The values of a data set as arrays."""
    return [
        numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else np.asarray(v)
        for v in values
    ]


@needs_wasm()
@pytest.mark.slow
def test_node_cases_pass_or_are_refused_with_a_code() -> None:
    passed, failures = 0, []
    for case in sample():
        try:
            artifact = smelt.compile(ir.from_proto(case.model), target=wasm, plain=False)
        except SmeltError:
            continue
        try:
            for inputs, outputs in case.data_sets:
                for got, want in zip(artifact(*arrays(inputs)), arrays(outputs), strict=True):
                    assert (got.dtype, got.shape) == (want.dtype, want.shape)
                    wide = [each.astype(np.float64) for each in (got, want)]
                    np.testing.assert_allclose(*wide, rtol=1e-2, atol=1e-5)
            passed += 1
        except (AssertionError, SmeltError) as error:
            failures.append(f"{case.name}: {error}")
    assert not failures, "\n".join(failures)
    assert passed > COUNT // 2
