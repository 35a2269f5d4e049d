"""Sizes that are products are compared by their lower bounds."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import export

import smelt
from smelt.frontends.jax import trace
from smelt.frontends.jax.open_sizes.least_sizes import least_size

B, T, N = export.symbolic_shape("B, T, N")
LEAST = {
    "rows but one": (B * T - B, 0),
    "of three": (B * T * N - N, 0),
    "a square": (B * B - B, 0),
    "one size": (N - 3, -2),
    "a quotient": ((B + 3) // 2, 2),
    "a quotient by a size": (B // T, 0),
    "a remainder": (B * T % 5 - 1, -1),
    "two sizes": (B - T, None),
    "what is taken away": (B * T - 2 * B, None),
    "a quotient of what may be negative": ((B - T) // 2, None),
}


@pytest.mark.parametrize(("size", "bound"), LEAST.values(), ids=LEAST.keys())
def test_lower_bounds_of_sizes(size: object, bound: int | None) -> None:
    assert least_size(size) == bound


def test_constraints_are_known() -> None:
    assert least_size(N - 3, ["N >= 4"]) == 1


def test_products_compare_in_every_order() -> None:
    def asks(x):
        b, t = x.shape
        rows = b * t - b
        return x[:-1] if rows >= 0 and not rows < 0 and rows > -1 and not rows <= -1 else x

    assert str(trace(asks, "f32[B,T]").graph.outputs[0].shape) == "[B - 1,T]"


@pytest.mark.parametrize("key", [True, False], ids=["with keys", "plain"])
def test_all_rows_but_one_are_flattened(key: bool) -> None:
    def flat(x, *keys):
        return jax.random.permutation(keys[0], x[:-1].reshape(-1)) if keys else x[:-1].reshape(-1)

    keys = [jax.random.key(3)] if key else []
    model = trace(flat, "f32[T,B]", *["key[]" for _ in keys])
    for shape in ((2, 3), (4, 2)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        data = [np.asarray(jax.random.key_data(each)) for each in keys]
        names = [value.name for value in model.graph.inputs]
        (got,) = smelt.run(model, dict(zip(names, [x, *data], strict=True))).values()
        np.testing.assert_array_equal(got, flat(x, *keys))
