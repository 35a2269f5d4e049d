"""Masks of attention that give each sequence its end, or its end and its start."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.operators.onnxruntime.microsoft.attention import visible_keys
from smelt.runtime.onnxruntime import OnnxRuntime

SELF = """g (float[2,3,4] x, float[4,12] w, float[12] b, int32[{}] m) => (float[2,3,4] y)
{{ y = com.microsoft.Attention<num_heads=2>(x, w, b, m) }}"""
BOTH = """g (float[2,3,4] q, float[2,3,4] k, float[2,3,4] v, int32[{}] m) => (float[2,3,4] y)
{{ y = com.microsoft.MultiHeadAttention<num_heads=2>(q, k, v, , m) }}"""


def operands(source: str, mask: list[int]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 4), (4, 12), (12,)] if source is SELF else [(2, 3, 4)] * 3
    return [*(rng.random(shape, np.float32) for shape in shapes), np.array(mask, np.int32)]


@pytest.mark.parametrize(
    ("source", "mask"), [(SELF, [2, 3]), (SELF, [3, 2, 1, 0]), (BOTH, [2, 3]), (BOTH, [1, 2])]
)
def test_keys_between_start_and_end_are_seen(source: str, mask: list[int]) -> None:
    given = operands(source, mask)
    model = source.format(len(mask))
    wanted = OnnxRuntime(text.parse(model, 19))(*given)[0]
    got = smelt.compile(text.parse(model, 19), target="host")(*given)[0]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_a_mask_of_lengths_has_an_element_for_each_key_and_not_for_each_row() -> None:
    scores = np.zeros((2, 1, 3, 4))
    seen = [[True, True, False, False], [True, True, True, True]]
    np.testing.assert_array_equal(visible_keys(np.array([2, 4]), scores)[:, 0, 0], seen)
    seen = [[False, True, False, False], [False, False, True, True]]
    np.testing.assert_array_equal(visible_keys(np.array([2, 4, 1, 2]), scores)[:, 0, 0], seen)
    assert visible_keys(np.ones((2, 4)), scores).shape == (2, 1, 1, 4)
    assert visible_keys(np.ones((2, 3, 4)), scores).shape == (2, 1, 3, 4)


def test_other_lengths_are_no_error_of_python() -> None:
    with pytest.raises(UsageError, match=r"E670[\s\S]*3 lengths for 2 sequences"):
        smelt.compile(text.parse(SELF.format(3), 19), target="host")(*operands(SELF, [1, 2, 3]))


ROTATED = SELF.replace("num_heads=2", "num_heads=2, do_rotary=1")
SHARED = """g (float[1,1,4] q, float[1,1,4] k, float[1,1,4] v, float[1,2,3,2] pk, float[1,2,3,2] pv,
int32[1] n) => (float[1,1,4] y, float[1,2,3,2] nk, float[1,2,3,2] nv)
{ y, nk, nv = com.microsoft.MultiHeadAttention<num_heads=2>(q, k, v, , , , pk, pv, n) }"""


def test_options_that_the_reference_ignores_are_refused() -> None:
    """It would be computed without."""
    with pytest.raises(UsageError, match="E670"):
        smelt.compile(text.parse(ROTATED.format(2), 19), target="host")(*operands(SELF, [2, 3]))
    rows = [np.ones((1, 1, 4), np.float32)] * 3
    held = [np.ones((1, 2, 3, 2), np.float32)] * 2
    run = smelt.compile(text.parse(SHARED, 19), target="host")
    with pytest.raises(UsageError, match="E670"):
        run(*rows, *held, np.array([1], np.int32))
