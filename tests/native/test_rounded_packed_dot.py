"""Products with weights of 4 and 8 bits whose left operand is rounded to int8 blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from c_library import STRICT, Library, compile_c, ops, with_values
from native.test_packed_dot import Case, given
from native.test_quantized_conv import AVX2, NATIVE, skip_what_lacks

from smelt.errors import ErrorList
from smelt.native.kernels.quantized.panel_codes import panel_codes
from smelt.native.kernels.quantized.weight_blocks import LONGEST, Blocks
from smelt.operators.onnxruntime.microsoft.packed import product


@dataclass(frozen=True)
class Rounded(Case):
    """A product that may round the left operand; ``halves``: float16 holds its scales."""

    halves: bool = False

    @property
    def attributes(self) -> dict[str, int]:
        return {**super().attributes, "accuracy_level": 4}

    @property
    def values(self) -> dict[str, np.ndarray]:
        held = super().values
        if self.halves:
            held["s"] = held["s"].astype(np.float16).astype(np.float32)
        return held


BITS = {
    f"{name}, {bits} bits": Rounded(*case[:3], bits=bits, **dict.fromkeys(case[3:], True))
    for bits in (4, 8)
    for name, case in {
        "a row": ((1, 64), 40, 32),
        "a row with zero points": ((1, 288), 33, 16, "zeros"),
        "half a block": ((3, 100), 17, 64, "zeros", "bias", "halves"),
        "9 rows of 3 dims": ((3, 3, 128), 9, 128, "bias"),
        "5 rows": ((5, 300), 64, 256, "halves"),
        "one column": ((1, 16), 1, 16, "zeros"),
        "several chunks": ((200, 40), 35, 8, "halves"),
    }.items()
}
BUILDS = {
    "plain": STRICT,
    "no vectors": (*STRICT, "-DSUMS=1", "-DDOTS=1"),
    "of this CPU": NATIVE,
    "avx2": AVX2,
}


@pytest.fixture(scope="module", params=BUILDS.values(), ids=BUILDS.keys())
def library(request: pytest.FixtureRequest) -> Library:
    skip_what_lacks(request.param)
    graphs = {name: case.graph for name, case in BITS.items()}
    return Library(graphs, flags=request.param, values={n: c.values for n, c in BITS.items()})


def rounded(x: np.ndarray, block: int) -> np.ndarray:
    """``x`` with each block rounded to multiples of 1/127 of its largest magnitude."""
    short = -x.shape[-1] % block
    blocks = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, short)]).reshape(*x.shape[:-1], -1, block)
    scale = np.abs(blocks).max(-1, keepdims=True).astype(np.float64) / 127
    codes = np.rint(blocks / np.where(scale == 0, 1, scale))
    return (codes * scale).reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]


@pytest.mark.parametrize("name", BITS)
def test_results_are_those_of_rounded_blocks(library: Library, name: str) -> None:
    case = BITS[name]
    x, _ = given(case)
    x[..., :8] = 0
    held = case.values
    weights = (held["b"], held["s"], *(held.get(key) for key in ("z", "p", "c")))
    (want,) = product((rounded(x, case.block), *weights), case.attributes)
    (got,) = library.run(name, [x])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-4 * np.abs(want).max())
    assert ops(library.models[name].artifact) == ["MatMulNBits"]


@pytest.mark.parametrize("bits", [4, 8])
def test_the_error_is_below_one_percent(library: Library, bits: int) -> None:
    name = f"5 rows, {bits} bits"
    x, want = given(BITS[name])
    (got,) = library.run(name, [x])
    assert np.linalg.norm(got - want) < 0.01 * np.linalg.norm(want)


def test_the_weights_keep_their_bits(library: Library) -> None:
    for bits in (4, 8):
        name = f"5 rows, {bits} bits"
        codes = BITS[name].values["b"]
        artifact = library.models[name].artifact
        assert artifact.plan.facts["weights_bytes"] < 1.3 * codes.size


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", ["a row, 4 bits", "half a block, 8 bits", "5 rows, 4 bits"])
def test_nan_and_inf_propagate_as_in_floats(library: Library, name: str, number: float) -> None:
    x, _ = given(BITS[name])
    x[0, 40] = number
    (got,), want = library.run(name, [x]), given(BITS[name], x)[1]
    np.testing.assert_allclose(
        got, want, rtol=1e-4, atol=1e-4 * np.abs(want[np.isfinite(want)]).max(initial=1)
    )
    assert not np.isfinite(want[0]).any()


OF_TILES = {
    f"{name}, {bits} bits": Rounded(*case[:3], bits=bits, **dict.fromkeys(case[3:], True))
    for bits in (4, 8)
    for name, case in {
        "two chunks": ((300, 96), 70, 32, "zeros"),
        "half a block": ((33, 100), 17, 64, "bias", "halves"),
        "few rows": ((24, 64), 32, 16),
    }.items()
}


@pytest.fixture(scope="module")
def tiles() -> Library:
    graphs = {name: case.graph for name, case in OF_TILES.items()}
    return Library(graphs, flags=NATIVE, values={n: c.values for n, c in OF_TILES.items()})


@pytest.mark.parametrize("name", OF_TILES)
def test_many_rows_are_near_the_floats(tiles: Library, name: str) -> None:
    x, want = given(OF_TILES[name])
    (got,) = tiles.run(name, [x])
    assert np.linalg.norm(got - want) < 0.01 * np.linalg.norm(want)
    x[3, 20] = np.inf
    want, (got,) = given(OF_TILES[name], x)[1], tiles.run(name, [x])
    np.testing.assert_allclose(got, want, rtol=0.01, atol=0.01 * np.abs(want[4:]).max())


def test_rows_that_bfloat16_rounds_to_infinity(tiles: Library) -> None:
    case = OF_TILES["few rows, 4 bits"]
    x, _ = given(case)
    x[3] = 0
    x[3, 20] = np.finfo(np.float32).max
    want, (got,) = given(case, x)[1], tiles.run("few rows, 4 bits", [x])
    np.testing.assert_allclose(got, want, rtol=0.01, atol=0.01 * np.abs(want[4:]).max())


@pytest.mark.parametrize("name", ["a row, 4 bits", "5 rows, 8 bits"])
def test_tiny_and_huge_rows(library: Library, name: str) -> None:
    for factor in (1e-40, 1e-30, 1e30):
        x, _ = given(BITS[name])
        x = (x * factor).astype(np.float32)
        (got,), want = library.run(name, [x]), given(BITS[name], x)[1]
        np.testing.assert_allclose(got, want, rtol=0.02, atol=max(0.02 * np.abs(want).max(), 1e-33))


@pytest.mark.parametrize("length", [LONGEST, 2 * LONGEST])
def test_blocks_whose_sums_may_exceed_32_bits_are_refused(length: int) -> None:
    case = Rounded((1, length), 1, length, bits=8)
    model = with_values(case.graph, 23, case.values)
    if length == LONGEST:
        assert ops(compile_c(model)) == ["MatMulNBits"]
    else:
        with pytest.raises(ErrorList, match="E201"):
            compile_c(model)


def test_scales_beyond_float16_raise_no_warning() -> None:
    case = Rounded((1, 16), 1, 16)
    values = {**case.values, "s": np.array([1e6], np.float32)}
    with np.errstate(over="raise"):
        compile_c(with_values(case.graph, 23, values))


def test_panels_are_shared_by_programs_that_read_codes_alike() -> None:
    codes = np.random.default_rng(0).integers(0, 256, (16, 16, 16)).astype(np.uint8)
    of_4, of_8 = Blocks(16, 512, 32, 4, True), Blocks(16, 256, 16, 8, True)
    panels = panel_codes(codes, of_4, 32)
    assert panel_codes(codes[:], of_4, 32) is panels
    turned = codes.transpose(1, 0, 2)
    for other, blocks in ((codes, of_8), (turned, of_4)):
        expected = panel_codes(other.copy(), blocks, 32)
        assert (expected != panels).any()
        np.testing.assert_array_equal(panel_codes(other, blocks, 32), expected)
