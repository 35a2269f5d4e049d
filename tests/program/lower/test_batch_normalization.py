"""BatchNormalization of a vector, which ONNX takes for one channel."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import InvalidModel
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime

VECTOR = """g (float[N] x, float[{0}] s, float[{0}] b, float[{0}] m, float[{0}] v) => (float[N] y)
{{ y = BatchNormalization<epsilon=0.01>(x, s, b, m, v) }}"""


@pytest.mark.parametrize("target", ["onnx", "ort", "host", "c"])
def test_a_vector_is_one_channel(target: str) -> None:
    bounds = {"dims": {"N": (1, 7)}} if target == "c" else {}
    run = smelt.compile(text.parse(VECTOR.format(1), 15), target=target, **bounds)
    wanted = OnnxRuntime(text.parse(VECTOR.format(1), 15))
    for size in (1, 7):
        rng = np.random.default_rng(size)
        given = [rng.random(size, np.float32), *(rng.random(1, np.float32) for _ in range(4))]
        np.testing.assert_allclose(run(*given)[0], wanted(*given)[0], rtol=1e-5)


def test_it_has_no_scale_for_each_element() -> None:
    with pytest.raises(InvalidModel, match="E317"):
        smelt.optimize(text.parse(VECTOR.format(3), 15))
