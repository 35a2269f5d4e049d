"""``constants=``: operands that are known when a network is compiled."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError

CHAIN, SIZES = "ab,bc,cd,de->ae", [(2, 3), (3, 4), (4, 5), (5, 2)]


def arrays_of(dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [
        (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
        if np.dtype(dtype).kind == "c"
        else rng.standard_normal(shape).astype(dtype)
        for shape in SIZES
    ]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("constants", [[], [0], [2, 3], [0, 2, 3], [1, 2], [0, 1, 2, 3]], ids=str)
@pytest.mark.parametrize("limit", [None, 6])
def test_calls_leave_constants_out(constants: list[int], dtype: type, limit: int | None) -> None:
    arrays = arrays_of(dtype)
    expected = np.linalg.multi_dot(arrays)
    artifact = smelt.compile_einsum(
        CHAIN, arrays, dtype, constants=constants, memory_limit=limit, engine="numpy"
    )
    others = [array for number, array in enumerate(arrays) if number not in constants]
    for each in (artifact, pickle.loads(pickle.dumps(artifact))):
        np.testing.assert_allclose(each(*others)[0], expected, rtol=1e-9)


def test_products_of_constants_are_computed_once() -> None:
    arrays = arrays_of(np.float64)
    artifact = smelt.compile_einsum(
        CHAIN, arrays, np.float64, constants=[2, 3], optimize=[(2, 3), (1, 2), (0, 1)]
    )
    assert artifact.network.slices.path == ((1, 2), (0, 1))
    (name,) = artifact.model.graph.initializers
    assert artifact.model.graph.initializers[name].shape == (4, 2)


WRONG: dict[str, tuple[list[Any], list[int]]] = {
    "a shape": ([(2, 3), (3, 4)], [0]),
    "no operand": ([np.ones((2, 3)), (3, 4)], [2]),
    "another type": ([np.ones((2, 3), complex), (3, 4)], [0]),
}


@pytest.mark.parametrize(("operands", "constants"), WRONG.values(), ids=WRONG)
def test_what_is_no_constant_is_refused(operands: list[Any], constants: list[int]) -> None:
    with pytest.raises(UsageError) as caught:
        smelt.compile_einsum("ab,bc->ac", operands, constants=constants)
    assert caught.value.code == "E656"
    assert len(str(caught.value)) < 400
