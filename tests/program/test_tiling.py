"""The bands of an instruction, put together, are the whole: windows, halos, groups, products."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lowered import lowered
from staged import run

from smelt.program.instruction import Program
from smelt.program.tiling import split, tile_to_fit

RNG = np.random.default_rng(5)


def inputs_of(program: Program) -> list[np.ndarray]:
    shapes = [program.slots[slot].shape for slot in program.inputs]
    return [RNG.standard_normal([*map(int, shape)]).astype(np.float32) for shape in shapes]


def check(source: str, axis: int, size: int) -> Program | None:
    """The program in bands, which computes the same; None if it cannot be split so."""
    program = lowered(source)
    (instruction,) = program.instructions
    bands = split(program, instruction, axis, size)
    if bands is None:
        return None
    tiled = replace(program, instructions=bands)
    arrays = inputs_of(program)
    whole = run(replace(program, instructions=[instruction]), *arrays)[0]
    np.testing.assert_allclose(run(tiled, *arrays)[0], whole, rtol=1e-5, atol=1e-5)
    return tiled


window = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2))


@settings(deadline=None, max_examples=60)
@given(
    window, st.integers(0, 2), st.integers(0, 2), st.integers(5, 9), st.integers(1, 2), st.data()
)
def test_bands_of_a_convolution(
    kernel: tuple[int, int, int], begin: int, end: int, size: int, group: int, data: st.DataObject
) -> None:
    k, stride, dilation = kernel
    assume(size + begin + end >= dilation * (k - 1) + 1)
    source = f"""g (float[2,{2 * group},{size},{size}] x, float[4,2,{k},{k}] w, float[4] b)
        => (float[n,m,h,v] y) {{ y = Conv<strides = [{stride},{stride}], dilations = [{dilation},{dilation}],
        pads = [{begin},{begin},{end},{end}], group = {group}>(x, w, b) }}"""
    axis = data.draw(st.integers(0, 3))
    band = data.draw(st.integers(1, 4))
    tiled = check(source, axis, band)
    if (axis == 0 and band == 1) or (axis == 1 and band == 2):
        assert tiled is not None


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["MaxPool", "AveragePool<count_include_pad = 1,", "AveragePool<"]),
    window,
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(5, 9),
    st.integers(0, 1),
    st.data(),
)
def test_bands_of_a_pool(
    op: str,
    kernel: tuple[int, int, int],
    begin: int,
    end: int,
    size: int,
    ceil: int,
    data: st.DataObject,
) -> None:
    k, stride, dilation = kernel
    assume(k > max(begin, end))
    head = op if "<" in op else f"{op}<"
    source = f"""g (float[2,3,{size},{size}] x) => (float[n,m,h,v] y) {{ y = {head}
        kernel_shape = [{k},{k}], strides = [{stride},{stride}], dilations = [{dilation},{dilation}],
        pads = [{begin},{begin},{end},{end}], ceil_mode = {ceil}>(x) }}"""
    check(source, data.draw(st.integers(0, 3)), data.draw(st.integers(1, 4)))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_bands_of_a_product(axis: int, size: int) -> None:
    product = "g (float[4,5,6] a, float[4,6,7] b) => (float[4,5,7] y) { y = MatMul(a, b) }"
    assert check(product, axis, size) is not None


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_bands_of_broadcast_operands(axis: int) -> None:
    mixed = "g (float[4,5,6] a, float[5,1] b) => (float[4,5,6] y) { y = Add(a, b) }"
    tiled = check(mixed, axis, 2)
    assert tiled is not None
    read = [i.inputs[0] for i in tiled.instructions if i.op == "Band"]
    assert (tiled.inputs[1] in read) == (axis == 1)


def test_halos_read_what_windows_cover_and_pad_only_the_border() -> None:
    tiled = check(
        "g (float[1,1,9,9] x, float[1,1,3,3] w) => (float[1,1,9,9] y) { y = Conv<pads=[1,1,1,1]>(x, w) }",
        2,
        3,
    )
    assert tiled is not None
    bands = [i.attributes for i in tiled.instructions if i.op == "Band"]
    assert [(b["starts"], b["stops"]) for b in bands] == [((0,), (4,)), ((2,), (7,)), ((5,), (9,))]
    pads = [i.attributes["pads"] for i in tiled.instructions if i.op == "Conv"]
    assert pads == [(1, 1, 0, 1), (0, 1, 0, 1), (0, 1, 1, 1)]


@pytest.mark.parametrize(
    ("source", "axis"),
    [
        ("g (float[4] x) => (float[4] y) { y = Softmax(x) }", 0),
        ("g (float[4] x) => (float[4] y) { y = Neg(x) }", 1),
        ("g (float[1] x) => (float[1] y) { y = Neg(x) }", 0),
    ],
)
def test_what_is_no_operator_on_parts_stays_whole(source: str, axis: int) -> None:
    assert check(source, axis, 1) is None


def test_bands_are_as_large_as_fit_and_smaller_instructions_stay_whole() -> None:
    source = """g (float[1,4,16,16] x, float[8,4,3,3] w) => (float[1,8,14,14] y) {
        c = Conv(x, w) y = Relu(c) }"""
    program = lowered(source)
    tiled = tile_to_fit(program, 8000)
    conv = [i for i in tiled.instructions if i.op == "Conv"]
    most = max(sum(tiled.slots[s].nbytes for s in (*i.inputs, *i.outputs)) for i in conv)
    assert 6000 < most <= 8000
    arrays = inputs_of(program)
    np.testing.assert_allclose(
        run(tiled, *arrays)[0], run(program, *arrays)[0], rtol=1e-5, atol=1e-5
    )
    assert tile_to_fit(program, 10**6).instructions == program.instructions
