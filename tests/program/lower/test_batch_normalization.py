"""BatchNormalization of a vector, which ONNX treats as one channel, and in training mode."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import InvalidModel, SmeltError
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


def test_a_vector_takes_one_scale_only() -> None:
    with pytest.raises(InvalidModel, match="E317"):
        smelt.optimize(text.parse(VECTOR.format(3), 15))


TRAINING = """g (float[{0}] x, float[3] s, float[3] b, float[3] m, float[3] v) => (y, p, q)
{{ y, p, q = BatchNormalization<training_mode=1, momentum=0.7>(x, s, b, m, v) }}"""


@pytest.mark.parametrize("shape", [(4, 3), (1, 3, 5), (4, 3, 1), (2, 3, 4, 5)])
def test_a_batch_is_normalized_by_its_own_statistics(shape: tuple[int, ...]) -> None:
    model = text.parse(TRAINING.format(",".join(map(str, shape))), 15)
    rng = np.random.default_rng(0)
    x, scale, bias, mean, variance = (rng.random(s, np.float32) for s in (shape, *[(3,)] * 4))
    axes, column = (0, *range(2, len(shape))), (3, *(1,) * (len(shape) - 2))
    centre, spread = x.mean(axes), x.var(axes)
    whole = (x - centre.reshape(column)) / np.sqrt(spread.reshape(column) + 1e-5)
    y, means, variances = smelt.compile(model, target="host", engine="numpy")(
        x, scale, bias, mean, variance
    )
    np.testing.assert_allclose(y, whole * scale.reshape(column) + bias.reshape(column), rtol=1e-3)
    np.testing.assert_allclose(means, 0.7 * mean + 0.3 * centre, rtol=1e-5)
    np.testing.assert_allclose(variances, 0.7 * variance + 0.3 * spread, rtol=1e-5)


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(SmeltError, match="the mean of a batch without elements"):
        smelt.compile(text.parse(TRAINING.format("0,3,5"), 15), target="host")
