"""Weights in blocks of few bits: what the operator reads of them is near what they were."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.operators.onnxruntime.four_bits import NF4
from smelt.operators.onnxruntime.microsoft.packed import unpacked
from smelt.targets.ort import blocks
from smelt.targets.ort.blocks import Packed, pack, pack_nf4, two_a_byte

RNG = np.random.default_rng(0)
FORMS = [(bits, symmetric) for bits in (4, 8) for symmetric in (True, False)]


def _read(packed: Packed, rows: int, bits: int) -> np.ndarray:
    """The weight that MatMulNBits multiplies with, of ``[rows, columns]``."""
    columns, count = packed.scales.shape
    block = packed.codes.shape[-1] * 8 // bits
    codes = unpacked(packed.codes, bits, block).astype(np.float64)
    zeros = np.full((columns, count), 1 << (bits - 1), np.float64)
    if packed.zeros is not None:
        zeros = unpacked(packed.zeros, bits, count).astype(np.float64)
    whole = (codes - zeros[..., None]) * packed.scales[..., None]
    return whole.reshape(columns, -1)[:, :rows].T


@pytest.mark.parametrize(("bits", "symmetric"), FORMS)
@pytest.mark.parametrize("shape", [(1, 1), (16, 3), (40, 5), (97, 2)])
def test_each_element_is_within_a_step(
    shape: tuple[int, int], bits: int, symmetric: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "AT_ONCE", 64)
    weight = RNG.standard_normal(shape).astype(np.float32) * np.float32(3)
    packed = pack(weight, bits, 16, symmetric)
    steps = np.repeat(np.abs(packed.scales), 16, axis=1)[:, : shape[0]].T
    # Of a symmetric block, the far end of the other sign lies a step beyond the last code; of the
    # zero point of an asymmetric one, rounding costs another half.
    assert np.all(np.abs(_read(packed, shape[0], bits) - weight) <= steps * 1.001)
    assert (packed.zeros is None) == symmetric


@pytest.mark.parametrize("bits", [4, 8])
def test_the_largest_element_of_a_symmetric_block_is_as_exact_as_its_scale(bits: int) -> None:
    weight = np.linspace(-1, 1.7, 32, dtype=np.float32)[:, None]
    found = _read(pack(weight, bits, 32, True), 32, bits)
    assert found[-1, 0] == pytest.approx(weight[-1, 0], rel=2**-11)


@pytest.mark.parametrize(("bits", "symmetric"), FORMS)
def test_zeros_and_tiny_numbers_divide_by_nothing(bits: int, symmetric: bool) -> None:
    weight = np.zeros((64, 3), np.float32)
    weight[:32, 1], weight[32:, 1], weight[5, 2] = 1e-42, 3e38, -3e38
    packed = pack(weight, bits, 32, symmetric)
    assert np.isfinite(packed.scales).all()
    found = _read(packed, 64, bits)
    assert not found[:, 0].any()
    np.testing.assert_allclose(found, weight, rtol=0.07, atol=1e-40)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(
    ("low", "high"), [(0.25, 0.5), (-0.5, -0.25), (-0.25, 0.5), (2.0, 3.0), (-3.0, -2.0)]
)
def test_all_codes_serve_the_range_of_a_block_and_zero(bits: int, low: float, high: float) -> None:
    weight = np.linspace(low, high, 16, dtype=np.float32)[:, None]
    (scale,) = pack(weight, bits, 16, False).scales.ravel()
    assert scale == pytest.approx((max(high, 0) - min(low, 0)) / (2**bits - 1), rel=2**-11)
    assert scale == np.float16(scale)


def test_a_range_over_zero_is_better_met_with_zero_points() -> None:
    weight = RNG.uniform(0, 1, (64, 4)).astype(np.float32)
    errors = [
        np.abs(_read(pack(weight, 4, 32, symmetric), 64, 4) - weight).mean()
        for symmetric in (True, False)
    ]
    assert errors[1] < 0.7 * errors[0]


def test_two_codes_are_a_byte_the_first_one_low() -> None:
    codes = np.array([[1, 2, 15]], np.uint8)
    assert two_a_byte(codes, 4).tolist() == [[0x21, 0x0F]]
    assert two_a_byte(codes, 8) is codes


def test_it_is_an_eighth_of_the_numbers_and_the_scales() -> None:
    packed = pack(np.ones((256, 64), np.float32), 4, 32, True)
    assert packed.nbytes == 256 * 64 // 2 + 8 * 64 * 4


@pytest.mark.parametrize("shape", [(1, 1), (16, 3), (40, 5), (97, 3)])
def test_a_block_of_nf4_goes_on_in_the_next_column(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "AT_ONCE", 64)
    rows, columns = shape
    weight = RNG.standard_normal(shape).astype(np.float32)
    packed = pack_nf4(weight, 16)
    assert packed.codes.nbytes == -(-weight.size // 2)
    assert packed.scales.nbytes == 4 * -(-weight.size // 16)
    codes = np.stack([packed.codes >> 4, packed.codes & 15], -1).reshape(-1)[: weight.size]
    scales = np.repeat(packed.scales, 16)[: weight.size]
    found = (NF4[codes] * scales).reshape(columns, rows).T
    step = scales.reshape(columns, rows).T * np.diff(NF4).max() / 2
    outside = np.maximum(np.abs(weight) - scales.reshape(columns, rows).T, 0)
    assert (np.abs(found - weight) <= np.maximum(step, outside) * 1.001).all()


def test_nf4_of_zeros_of_its_own_numbers_and_of_extremes() -> None:
    weight = np.zeros((16, 4), np.float32)
    weight[:, 1], weight[3, 2], weight[5, 3] = 3 * NF4, 1e-42, -3e38
    packed = pack_nf4(weight, 16)
    assert np.isfinite(packed.scales).all()
    codes = np.stack([packed.codes >> 4, packed.codes & 15], -1).reshape(4, 16)
    found = (NF4[codes] * packed.scales[:, None]).T
    np.testing.assert_allclose(found, weight, rtol=1e-6, atol=1e-40)


def test_nf4_errs_less_than_int4_on_normal_numbers() -> None:
    weight = RNG.standard_normal((512, 8)).astype(np.float32)
    packed = pack_nf4(weight, 32)
    codes = np.stack([packed.codes >> 4, packed.codes & 15], -1).reshape(-1, 32)
    back = (NF4[codes] * packed.scales[:, None]).reshape(8, 512).T
    coarse = _read(pack(weight, 4, 32, True), 512, 4)
    assert np.square(back - weight).sum() < 0.95 * np.square(coarse - weight).sum()
