"""Convolutions that panels of pixels compute, of every kind of window."""

from __future__ import annotations

import re

import numpy as np
import pytest
from c_library import random_inputs, with_constants

from smelt.native.kernels.conv_panels import CONV
from smelt.native.rewrite.convolve_packed import convolve_packed
from smelt.native.schedule import planned

RNG = np.random.default_rng(0)


@pytest.fixture(params=["native"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def finishes(artifact) -> list[tuple[str, ...]]:
    """What finishes each of the convolutions by panels."""
    program = artifact.opened().compiled.program.copy()
    ordered = planned(program, "host", (convolve_packed,))
    steps = [step for step in ordered.instructions if step.op == CONV]
    return [tuple(each.op for each in step.epilogue) for step in steps]


def some(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


CONVOLUTION = """g (float[{n},{channels},{image}] x, float[{filters},{inner},{kernel}] w, float[{filters}] b) => (float[{rank}] y) {{
    c = Conv<{attributes}>(x, w, b)
    r = Relu(c)
    k = Tanh(r)
    y = Add(k, c)
}}"""

CASES = {
    "pointwise": (2, 64, "30,30", 128, "1,1", ""),
    "padding": (1, 32, "40,41", 48, "3,3", "pads = [1,1,1,1]"),
    "strides and unequal padding": (2, 32, "61,50", 64, "3,3", "pads = [0,1,2,0], strides = [2,2]"),
    "dilations": (1, 32, "40,40", 64, "3,3", "dilations = [2,3]"),
    "groups": (2, 128, "24,24", 128, "3,3", "group = 2, pads = [1,1,1,1]"),
    "a row too long for the stack": (1, 8, "20000", 16, "9", "pads = [4,4]"),
    "rows of one pixel": (1, 16, "200,3", 32, "3,3", "pads = [1,0,1,0]"),
    "one dim": (2, 64, "900", 64, "5", "pads = [2,2]"),
    "three dims": (1, 32, "10,12,14", 32, "3,3,3", "pads = [1,1,1,1,1,1]"),
    "a last panel of one pixel": (1, 64, "5,13", 72, "1,1", ""),
    "a last panel of most pixels": (1, 24, "5,12", 40, "3,3", "pads = [1,1,1,1]"),
    "more padding than image": (1, 16, "4,9", 32, "5,5", "pads = [6,6,6,6], dilations = [2,2]"),
    "strides of three": (1, 16, "40,40", 32, "3,3", "strides = [3,3], pads = [2,2,2,2]"),
    "wide rows": (2, 24, "19,64", 40, "3,3", "pads = [1,1,1,1]"),
    "rows of most of a panel": (1, 16, "9,65", 23, "3,3", "pads = [1,0,1,0]"),
    "rows cut into blocks": (1, 64, "9,500", 33, "3,3", "pads = [1,1,1,1], strides = [2,1]"),
    "wide rows far apart": (1, 40, "40,96", 24, "3,3", "pads = [9,4,9,4], dilations = [9,4]"),
    "few rows far apart": (1, 8, "30,64", 32, "3,3", "pads = [3,2,3,2], dilations = [3,2]"),
    "wide rows of groups": (1, 64, "20,48", 96, "3,5", "group = 2, pads = [2,2,0,2]"),
    "rows of a long kernel": (1, 8, "1000", 40, "21", "pads = [10,10]"),
    "columns far apart": (2, 8, "800", 16, "3", "pads = [200,150], dilations = [200]"),
    "columns far apart of rows": (
        *(1, 8, "9,420", 32, "3,3"),
        "pads = [1,100,1,90], strides = [2,1], dilations = [1,150]",
    ),
    "columns of a long kernel far apart": (
        *(1, 4, "900", 16, "11"),
        "pads = [650,0], dilations = [60]",
    ),
    "more padding than a wide image": (1, 16, "5,64", 32, "3,3", "pads = [6,40,6,40]"),
    "pointwise with strides": (1, 128, "60,60", 64, "1,1", "strides = [2,2]"),
}


def source_of(name: str) -> str:
    n, channels, image, filters, kernel, attributes = CASES[name]
    groups = int((re.findall(r"group = (\d)", attributes) or ["1"])[0])
    return CONVOLUTION.format(
        n=n,
        channels=channels,
        image=image,
        filters=filters,
        inner=channels // groups,
        kernel=kernel,
        rank=",".join("ABCDE"[: 2 + len(image.split(","))]),
        attributes=attributes or "group = 1",
    )


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "padding" else pytest.mark.slow) for n in CASES]
)
def test_a_convolution_of_every_kind(agree, compile_host, name: str) -> None:
    n, channels, image, filters, kernel, attributes = CASES[name]
    groups = int((re.findall(r"group = (\d)", attributes) or ["1"])[0])
    source = source_of(name)
    sizes = [int(size) for size in image.split(",")]
    window = [int(size) for size in kernel.split(",")]
    terms = channels // groups * int(np.prod(window))
    weights = some(filters, channels // groups, *window) / np.float32(terms**0.5)
    given = some(n, channels, *sizes), weights, some(filters)
    agree(source, *given, rtol=1e-3, atol=1e-4)
    assert len(finishes(compile_host(source))) == 1


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "wide rows" else pytest.mark.slow) for n in CASES]
)
def test_weights_that_are_known(agree, name: str) -> None:
    """They are laid out as the tiles read them."""
    model = with_constants(source_of(name), 23, "w b")
    agree(model, *(array / 8 for array in random_inputs(model)), rtol=1e-3, atol=1e-3)


def test_rows_or_pixels_or_filters_by_what_fills_vectors(compile_host) -> None:
    """Of constant weights: wide rows are read by panels; else filters are neighbours."""

    def by_panels(name: str) -> bool:
        return bool(finishes(compile_host(with_constants(source_of(name), 23, "w b"))))

    assert by_panels("wide rows")
    assert by_panels("pointwise")
    assert by_panels("three dims")
    assert not by_panels("padding")


@pytest.mark.slow
def test_a_residual_without_bias(agree, compile_host) -> None:
    source = """g (float[1,64,56,56] x, float[64,64,3,3] w, float[1,64,56,56] r) => (float[1,64,56,56] y) {
        c = Conv<pads = [1,1,1,1]>(x, w)
        s = Add(r, c)
        y = Relu(s)
    }"""
    weights = some(64, 64, 3, 3) / np.float32(24)
    agree(source, some(1, 64, 56, 56), weights, some(1, 64, 56, 56))
    assert finishes(compile_host(source)) == [("Add", "Relu")]


@pytest.mark.parametrize(
    ("channels", "filters", "kernel"), [(1, 64, 3), (64, 4, 3), (64, 64, 9)], ids=str
)
def test_others_stay_as_they_are(compile_host, channels: int, filters: int, kernel: int) -> None:
    """Few terms, few filters, few pixels."""
    source = f"""g (float[1,{channels},12,12] x, float[{filters},{channels},{kernel},{kernel}] w)
        => (float[A,B,C,D] y) {{ y = Conv(x, w) }}"""
    if channels == 1:
        source = source.replace(",3,3]", ",1,1]")
    assert finishes(compile_host(source)) == []
