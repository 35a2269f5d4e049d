"""Convolutions of bytes by constant bytes: the bits of exact sums, at every shape and type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from c_library import STRICT, Library, compile_c, ops, with_values
from quantized_arithmetic import convolved, factors, in_fixed_point, requantized

WIDE = (*(flag for flag in STRICT if flag != "-DSMELT_NO_DISPATCH"), "-O2")
"""Flags with which the vectors of the CPU are chosen at run time."""

AVX2 = (*STRICT, "-mavx2")
"""Products of 16 bits, also where the CPU has those of bytes."""

NATIVE = (*STRICT, "-march=native")
"""The widest vectors of this CPU, and no other version, which takes a fifth of the time."""


@dataclass(frozen=True)
class Case:
    """One convolution: channels, image, filters, kernel, and what else it says."""

    channels: int
    image: tuple[int, int]
    filters: int
    kernel: tuple[int, int]
    x: str = "uint8"
    w: str = "int8"
    w_zero: bool = False
    each: bool = True
    bias: bool = True
    group: int = 1
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)
    batch: int = 1
    extreme: bool = False
    trained: bool = False
    scaled: float = 1.0

    @property
    def values(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.channels + self.filters)
        scales = rng.uniform(0.004, 0.02, self.filters if self.each else ()).astype(np.float32)
        scales *= np.float32(self.scaled)
        shape = (self.filters, self.channels // self.group, *self.kernel)
        found = {
            "xs": np.float32(0.03),
            "xz": np.asarray(117 if self.x == "uint8" else -9, self.x),
            "w": self._normal(rng, shape) if self.trained else self._bytes(rng, self.w, shape),
            "ws": scales,
            "wz": np.full(scales.shape, 120 if self.w == "uint8" else 7 * self.w_zero, self.w),
            "ys": np.float32(0.1 * np.sqrt(np.prod(shape[1:]))),
            "yz": np.asarray(100 if self.x == "uint8" else 20, self.x),
        }
        if self.bias:
            found["b"] = rng.integers(-9000, 9000, self.filters).astype(np.int32)
        return found

    @property
    def graph(self) -> str:
        values = self.values
        declared = "".join(
            f", {a.dtype.name.replace('float32', 'float')}{list(a.shape) if a.ndim else ''} {name}"
            for name, a in values.items()
        )
        sums = convolved(self.given, values["w"], **self.window)
        return (
            f"g ({self.x}{list(self.given.shape)} x{declared}) => "
            f"({self.x}{list(sums.shape)} y) {{ y = QLinearConv<{self.attributes}>"
            f"(x, xs, xz, w, ws, wz, ys, yz{', b' if self.bias else ''}) }}"
        )

    @property
    def attributes(self) -> str:
        """The window in ONNX text."""
        return ", ".join(
            f"{name}={list(value) if isinstance(value, tuple) else value}"
            for name, value in self.window.items()
        )

    @property
    def window(self) -> dict[str, object]:
        return {
            "strides": self.strides,
            "pads": self.pads,
            "dilations": self.dilations,
            "group": self.group,
        }

    @property
    def given(self) -> np.ndarray:
        shape = (self.batch, self.channels, *self.image)
        return self._bytes(np.random.default_rng(3), self.x, shape)

    def _bytes(self, rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
        limits = np.iinfo(kind)
        if self.extreme:
            return rng.choice([limits.min, limits.max], shape).astype(kind)
        return rng.integers(limits.min, limits.max + 1, shape).astype(kind)

    def _normal(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """As weights of each filter are after training: a few in a hundred pairs are beyond 128.

        The first ones are as large as they can be, so that both bounds of 16 bits are met.
        """
        found = rng.normal(0, 36, shape).round().clip(-128, 127).astype(self.w)
        found[0].reshape(-1)[:2], found[-1].reshape(-1)[:2] = 127, -128
        return found

    @property
    def sums(self) -> np.ndarray:
        v = self.values
        x = self.given.astype(int) - int(v["xz"])
        weights = v["w"].astype(int) - v["wz"].astype(int).reshape(
            (-1, 1, 1, 1) if self.each else ()
        )
        sums = convolved(x, weights, **self.window)
        if self.bias:
            sums = sums + v["b"].reshape(1, -1, 1, 1)
        return sums

    @property
    def wanted(self) -> np.ndarray:
        v = self.values
        factor = factors(v["xs"], v["ws"], v["ys"])
        factor = factor.reshape(1, -1, 1, 1) if self.each else factor
        return requantized(self.sums, factor, v["yz"], np.dtype(self.x))


CASES = {
    "three by three": Case(8, (9, 11), 13, (3, 3), pads=(1, 1, 1, 1)),
    "int8": Case(8, (9, 11), 13, (3, 3), x="int8", pads=(1, 1, 1, 1)),
    "odd channels, stride": Case(3, (17, 13), 7, (3, 3), strides=(2, 2), pads=(0, 0, 1, 1)),
    "stride three": Case(2, (20, 19), 5, (2, 5), x="int8", strides=(3, 3), pads=(1, 2, 3, 4)),
    "dilated": Case(4, (12, 12), 6, (3, 2), dilations=(2, 3), strides=(1, 2), pads=(2, 2, 2, 2)),
    "pointwise": Case(16, (25, 5), 20, (1, 1)),
    "rows of whole vectors": Case(9, (5, 32), 13, (3, 3), pads=(1, 1, 1, 1)),
    "rows of a few vectors": Case(4, (3, 29), 8, (3, 2), x="int8", pads=(1, 0, 1, 1)),
    "many pixels": Case(5, (24, 24), 4, (1, 1), x="int8"),
    "pixels that no row divides": Case(2, (19, 19), 3, (1, 1)),
    "pointwise with padding": Case(3, (5, 5), 4, (1, 1), pads=(1, 1, 1, 1)),
    "one pixel": Case(40, (1, 1), 11, (1, 1), x="int8"),
    "uint8 weights": Case(6, (8, 8), 9, (3, 3), w="uint8", pads=(1, 1, 1, 1)),
    "weights with zero points": Case(6, (8, 8), 9, (3, 3), w_zero=True),
    "extreme": Case(33, (7, 9), 7, (3, 3), pads=(1, 1, 1, 1), extreme=True),
    "extreme, int8, stride": Case(
        5, (9, 37), 7, (1, 1), x="int8", strides=(2, 2), pads=(0, 1, 0, 1), extreme=True
    ),
    "trained": Case(12, (9, 11), 19, (3, 3), pads=(1, 1, 1, 1), trained=True),
    "trained, groups, extreme": Case(
        *(10, (9, 21), 14, (3, 2), "int8"),
        group=2,
        strides=(2, 1),
        pads=(1, 1, 1, 1),
        batch=2,
        extreme=True,
        trained=True,
    ),
    "trained, pointwise": Case(41, (13, 13), 16, (1, 1), extreme=True, trained=True),
    "trained, one channel": Case(1, (28, 27), 13, (7, 5), strides=(2, 2), trained=True),
    "one scale": Case(6, (8, 8), 9, (3, 3), each=False, bias=False),
    "groups": Case(6, (9, 9), 8, (3, 3), group=2, pads=(1, 1, 1, 1), batch=2),
    "one channel": Case(1, (14, 14), 8, (5, 5), pads=(2, 2, 2, 2)),
    "one channel, dilated": Case(
        *(1, (19, 23), 7, (2, 4), "int8"),
        strides=(2, 2),
        dilations=(2, 3),
        pads=(2, 5, 1, 8),
        batch=2,
    ),
    "one channel, stride three": Case(1, (16, 31), 5, (3, 7), strides=(1, 3), w="uint8"),
    "depthwise": Case(6, (9, 9), 6, (3, 3), group=6, pads=(1, 1, 1, 1)),
    "depthwise, stride": Case(5, (15, 14), 5, (3, 3), x="int8", group=5, strides=(2, 2)),
    "depthwise, two filters": Case(4, (9, 33), 8, (5, 3), group=4, pads=(2, 1, 2, 1)),
    "depthwise, extreme": Case(4, (7, 40), 4, (3, 3), group=4, pads=(1, 1, 1, 1), extreme=True),
    "depthwise, five columns": Case(3, (8, 9), 3, (1, 5), x="int8", group=3, pads=(0, 2, 0, 2)),
    "depthwise, uint8 weights": Case(3, (8, 40), 3, (3, 3), w="uint8", group=3, strides=(2, 2)),
    "depthwise, bands": Case(2, (70, 45), 2, (3, 3), group=2, pads=(1, 1, 1, 1), batch=2),
    "depthwise, dilated": Case(3, (20, 20), 3, (3, 3), group=3, dilations=(2, 2), strides=(1, 3)),
}


BUILDS = {
    "plain": STRICT,
    "no vectors": pytest.param((*STRICT, "-DSUMS=1"), marks=pytest.mark.slow),
    "chosen at run time": WIDE,
    "avx2": pytest.param(AVX2, marks=pytest.mark.slow),
}
BUILDS_OF_MANY = BUILDS | {
    "of this CPU": NATIVE,
    "chosen at run time": pytest.param(WIDE, marks=pytest.mark.slow),
}
"""The builds of many models: all versions of each in one take a second of compiling a model."""


def skip_what_lacks(flags: tuple[str, ...]) -> None:
    """Skip a build for vectors that this CPU does not have."""
    if flags is AVX2 and "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no AVX2")


def compiled(names: Iterable[str], flags: tuple[str, ...], **options: object) -> Library:
    """The cases called ``names`` in one library."""
    cases = {name: CASES[name] for name in names}
    graphs = {name: case.graph for name, case in cases.items()}
    values = {name: case.values for name, case in cases.items()}
    return Library(graphs, flags=flags, values=values, **options)


@pytest.fixture(scope="module", params=BUILDS_OF_MANY.values(), ids=BUILDS_OF_MANY.keys())
def library(request: pytest.FixtureRequest) -> Library:
    skip_what_lacks(request.param)
    return compiled(CASES, request.param)


@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_those_of_exact_sums(library: Library, name: str) -> None:
    case = CASES[name]
    (got,) = library.run(name, [case.given])
    np.testing.assert_array_equal(got, case.wanted)
    assert len(np.unique(got)) > 8
    assert ops(library.models[name].artifact) == ["QLinearConv"]


@pytest.mark.parametrize("flags", [STRICT, NATIVE, (*STRICT, "-DSUMS=1")], ids=str)
def test_products_beyond_32_bits_are_the_least_and_the_largest_byte(flags: tuple[str, ...]) -> None:
    cases = {
        "pixels by filters": Case(8, (9, 16), 6, (3, 3), pads=(1, 1, 1, 1), scaled=1e8),
        "depthwise": Case(6, (9, 35), 6, (3, 3), x="int8", group=6, scaled=1e8),
        "just small": Case(8, (9, 16), 6, (1, 1), extreme=True, scaled=100.0),
    }
    graphs = {name: case.graph for name, case in cases.items()}
    values = {name: case.values for name, case in cases.items()}
    found = Library(graphs, flags=flags, values=values)
    for name, case in cases.items():
        (got,) = found.run(name, [case.given])
        np.testing.assert_array_equal(got, case.wanted, err_msg=name)
        assert {np.iinfo(case.x).min, np.iinfo(case.x).max} <= set(got.reshape(-1).tolist())


def test_the_bits_are_the_same_where_a_run_chooses_its_vectors() -> None:
    """A product and a sum by channels; the slow tests take all cases."""
    chosen = compiled(("three by three", "depthwise"), flags=WIDE)
    for name in chosen.models:
        (got,) = chosen.run(name, [CASES[name].given])
        np.testing.assert_array_equal(got, CASES[name].wanted, err_msg=name)


def test_the_bits_are_the_same_with_products_of_bytes_that_saturate() -> None:
    """On AVX2 without VNNI pairs of trained weights are held to what 16 bits take."""
    skip_what_lacks(AVX2)
    held = compiled([name for name, case in CASES.items() if case.trained], flags=AVX2)
    for name in held.models:
        (got,) = held.run(name, [CASES[name].given])
        np.testing.assert_array_equal(got, CASES[name].wanted, err_msg=name)
        assert "clamp_quads" in str(held.models[name].artifact.files)


@pytest.fixture(scope="module")
def fixed() -> Library:
    return compiled(CASES, NATIVE, quantized="fixed")


@pytest.mark.parametrize("name", CASES)
def test_multipliers_and_shifts_are_those_of_gemmlowp(fixed: Library, name: str) -> None:
    case, v = CASES[name], CASES[name].values
    factor = np.float64(v["xs"]) * np.asarray(v["ws"], np.float64) / np.float64(v["ys"])
    factor = factor.reshape(1, -1, 1, 1) if case.each else factor
    wanted = in_fixed_point(case.sums, factor, v["yz"], np.dtype(case.x))
    (got,) = fixed.run(name, [case.given])
    np.testing.assert_array_equal(got, wanted)
    assert np.abs(got.astype(int) - case.wanted).max() <= 1


def test_weights_are_bytes_in_memory() -> None:
    case = Case(64, (8, 8), 64, (3, 3), pads=(1, 1, 1, 1))
    artifact = compile_c(with_values(case.graph, 23, case.values))
    assert artifact.plan.facts["weights_bytes"] < 1.05 * case.values["w"].size


SUMMED = {
    "whole": Case(4, (6, 6), 5, (3, 3)),
    "depthwise": Case(6, (9, 35), 6, (3, 3), group=6, pads=(1, 1, 1, 1), batch=2),
    "depthwise, bands": Case(2, (70, 45), 4, (5, 3), x="int8", group=2, pads=(2, 1, 2, 1)),
    "depthwise, stride": Case(5, (15, 14), 5, (3, 3), w="uint8", group=5, strides=(2, 2)),
    "depthwise, extreme": Case(3, (7, 40), 3, (1, 5), group=3, extreme=True),
}


def summed(case: Case, zero: str) -> str:
    """As ConvInteger, with weights less their zero point and a ``zero`` point of the image."""
    v = case.values
    given, weights = (a.dtype.name + str(list(a.shape)) for a in (case.given, v["w"]))
    sums = convolved(case.given, v["w"], **case.window)
    return (
        f"g ({given} x, {weights} w, {case.w} wz, {case.x} z) => (int32{list(sums.shape)} y) "
        f"{{ y = ConvInteger<{case.attributes}>(x, w, {zero}, wz) }}"
    )


@pytest.fixture(scope="module", params=[STRICT, NATIVE], ids=["plain", "of this CPU"])
def sums(request: pytest.FixtureRequest) -> Library:
    graphs, values = {}, {}
    for name, case in SUMMED.items():
        zero_of_weights = case.values["wz"].reshape(-1)[0]
        for told, zero in (("told", "z"), ("zero", "")):
            graphs[f"{name} {told}"] = summed(case, zero)
            values[f"{name} {told}"] = {"w": case.values["w"], "wz": zero_of_weights}
    return Library(graphs, flags=request.param, values=values)


@pytest.mark.parametrize("told", ["told", "zero"])
@pytest.mark.parametrize("name", SUMMED)
def test_sums_are_the_result_of_conv_integer(sums: Library, name: str, told: str) -> None:
    """The zero point of its image may come at run time."""
    case = SUMMED[name]
    zero = np.asarray(-77 if case.x == "int8" else 130, case.x)
    x = case.given.astype(int) - (int(zero) if told == "told" else 0)
    w = case.values["w"].astype(int) - int(case.values["wz"].reshape(-1)[0])
    (got,) = sums.run(f"{name} {told}", [case.given, zero])
    np.testing.assert_array_equal(got, convolved(x, w, **case.window))
    assert ops(sums.models[f"{name} {told}"].artifact) == ["ConvInteger"]


def test_sums_that_may_exceed_32_bits_are_spelled_out() -> None:
    case = Case(2, (5, 5), 2, (3, 3))
    values = case.values | {"b": np.full(2, 2**31 - 1, np.int32)}
    assert "QLinearConv" not in ops(compile_c(with_values(case.graph, 23, values)))


def test_convolutions_of_several_kernels_in_one_model() -> None:
    """Each has a tile for its own number of places in the image."""
    cases = [Case(1, (6, 9), 6, (3, 3)), Case(8, (6, 9), 6, (3, 3)), Case(8, (6, 9), 6, (2, 2))]
    shapes = [convolved(c.given, c.values["w"], **c.window).shape for c in cases]
    inputs = ", ".join(f"uint8{list(c.given.shape)} x{i}" for i, c in enumerate(cases))
    outputs = ", ".join(f"int32{list(shape)} y{i}" for i, shape in enumerate(shapes))
    body = " ".join(f"y{i} = ConvInteger(x{i}, w{i})" for i in range(len(cases)))
    weights = {f"w{i}": c.values["w"] for i, c in enumerate(cases)}
    declared = "".join(f", int8{list(w.shape)} {name}" for name, w in weights.items())
    artifact = compile_c(
        with_values(f"g ({inputs}{declared}) => ({outputs}) {{ {body} }}", 23, weights)
    )
    for case, got in zip(cases, artifact(*(c.given for c in cases)), strict=True):
        wanted = convolved(case.given.astype(int), case.values["w"].astype(int), **case.window)
        np.testing.assert_array_equal(got, wanted)
