"""Gathers and scatters along an axis whose operands have other sizes elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from targets.coreml.packages import computed, types, written

from smelt.errors import SmeltError

F = np.float32
DATA = np.arange(20, dtype=F).reshape(4, 5)
INDICES = np.array([[3, 1, 0], [2, -1, 1]])


def bounds(names: str) -> dict[str, tuple[int, int]]:
    return dict.fromkeys(names, (1, 9))


def test_fewer_indices_than_elements_along_another_axis():
    model = "g (float[4,5] x, int64[2,3] i) => (float[2,3] y) { y = GatherElements(x, i) }"
    (found,) = computed(written(model), DATA, INDICES)
    np.testing.assert_array_equal(found, np.take_along_axis(DATA[:, :3], INDICES, 0))


def test_open_sizes_are_not_taken_as_equal():
    model = "g (float[A,B] x, int64[C,D] i) => (float[C,D] y) { y = GatherElements(x, i) }"
    artifact = written(model, dims=bounds("ABCD"))
    assert "slice_by_index" in types(artifact)
    (found,) = computed(artifact, DATA, INDICES)
    np.testing.assert_array_equal(found, np.take_along_axis(DATA[:, :3], INDICES, 0))


def test_open_sizes_of_one_name_are_equal():
    model = "g (float[A,B] x, int64[C,B] i) => (float[C,B] y) { y = GatherElements(x, i) }"
    assert "slice_by_index" not in types(written(model, dims=bounds("ABC")))


SCATTER = (
    "g (float[A,B] x, int64[C,SIZE] i, float[C,SIZE] u) => (float[A,B] y)"
    " { y = ScatterElements(x, i, u) }"
)


def test_a_scatter_of_perhaps_fewer_indices_is_refused():
    with pytest.raises(SmeltError) as caught:
        written(SCATTER.replace("SIZE", "D"), dims=bounds("ABCD"))
    (error,) = caught.value.errors
    assert error.code == "E201"
    assert "fewer" in error.why
    equal = written(SCATTER.replace("SIZE", "B"), dims=bounds("ABC"))
    assert "scatter_along_axis" in types(equal)
