"""float8e8m0, powers of 2 for scales: every code is read exactly, and stored as ONNX rounds it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from c_library import Library
from onnx.numpy_helper import to_float8e8m0

from smelt.errors import SmeltError

POWER = ml_dtypes.float8_e8m0fnu
GRAPHS = {
    str(
        saturate
    ): f"g (float[500] x) => (float8e8m0[500] y) {{ y = Cast<to = 24, saturate = {saturate}>(x) }}"
    for saturate in (0, 1)
}
READ = "g (float8e8m0[256] x) => (float[256] y) { y = Cast<to = 1>(x) }"


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS | {"read": READ}, opset=24)


def numbers() -> np.ndarray:
    rng = np.random.default_rng(0)
    odd = [0, -0.0, 1, -3, np.nan, np.inf, -np.inf, 3.4e38, 2.0**127, 1e-45, 2.0**-127, 2.0**-126]
    drawn = rng.standard_normal(500 - len(odd)) * 2.0 ** rng.integers(-126, 127, 500 - len(odd))
    return np.concatenate([odd, drawn]).astype(np.float32)


@pytest.mark.parametrize("saturate", [0, 1])
def test_numbers_are_stored_as_onnx_rounds_them(library: Library, saturate: int) -> None:
    (got,) = library.run(str(saturate), [numbers()])
    wanted = to_float8e8m0(numbers(), saturate=bool(saturate))
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))


def test_every_code_is_read(library: Library) -> None:
    codes = np.arange(256).astype(np.uint8).view(POWER)
    (got,) = library.run("read", [codes])
    np.testing.assert_array_equal(got, codes.astype(np.float32))


def test_another_way_to_round_is_refused() -> None:
    graph = 'g (float[2] x) => (float8e8m0[2] y) { y = Cast<to = 24, round_mode = "down">(x) }'
    with pytest.raises(SmeltError, match="round_mode"):
        Library({"down": graph}, opset=24)
