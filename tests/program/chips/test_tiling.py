"""The bands of an instruction together compute the whole: windows, halos, groups, products."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lowered import lowered
from staged import SUMS, run

from smelt.program.chips.layouts import Layouts, verify_layouts, with_layouts
from smelt.program.chips.memories import Memory
from smelt.program.chips.staging import plan_staged
from smelt.program.chips.summing import STAGE
from smelt.program.chips.tile_regions import REGIONS
from smelt.program.chips.tile_search import misfit, tile_to_fit
from smelt.program.chips.tiling import Sizes, split
from smelt.program.instruction import Program
from smelt.program.layout import Layout


def inputs_of(program: Program) -> list[np.ndarray]:
    random = np.random.default_rng(5)
    shapes = [program.slots[slot].shape for slot in program.inputs]
    return [random.standard_normal([*map(int, shape)]).astype(np.float32) for shape in shapes]


def check(source: str, axis: int, size: int) -> Program | None:
    """Return the program in bands, after a check of its results; None if it cannot be split."""
    return check_tiles(source, {axis: size})


def check_tiles(source: str, sizes: Sizes) -> Program | None:
    """Return the program in tiles, after a check of its results; None if it cannot be split."""
    program = lowered(source)
    (instruction,) = program.instructions
    bands = split(program, instruction, sizes)
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
def test_operators_that_cannot_be_split_stay_whole(source: str, axis: int) -> None:
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


@settings(deadline=None, max_examples=40)
@given(window, st.integers(0, 2), st.integers(1, 2), st.permutations([0, 1, 2, 3]), st.data())
def test_boxes_of_a_convolution(
    kernel: tuple[int, int, int], pad: int, group: int, order: list[int], data: st.DataObject
) -> None:
    k, stride, dilation = kernel
    assume(7 + 2 * pad >= dilation * (k - 1) + 1)
    source = f"""g (float[2,{2 * group},7,7] x, float[4,2,{k},{k}] w, float[4] b)
        => (float[n,m,h,v] y) {{ y = Conv<strides = [{stride},{stride}], dilations = [{dilation},{dilation}],
        pads = [{pad},{pad},{pad},{pad}], group = {group}>(x, w, b) }}"""
    depth = data.draw(st.integers(2, 4))
    sizes = {axis: data.draw(st.integers(1, 4)) for axis in order[:depth]}
    tiled = check_tiles(source, sizes)
    if pad == 0 and group == 1 and sizes.get(0) == 1:
        assert tiled is not None


@pytest.mark.parametrize("sizes", [{0: 3, 1: 2}, {1: 3, 0: 4}, {2: 3, 1: 2}, {0: 1, 2: 5, 1: 2}])
def test_boxes_of_a_product(sizes: Sizes) -> None:
    product = "g (float[4,5,6] a, float[4,6,7] b) => (float[4,5,7] y) { y = MatMul(a, b) }"
    assert check_tiles(product, sizes) is not None


CONV = "g (float[1,8,32,32] x, float[64,8,3,3] w) => (float[1,64,30,30] y) { y = Conv(x, w) }"


def loads(tiled: Program, position: int) -> int:
    """Return the bytes that the tiles read of an operand; a band that neighbors share counts once."""
    found, held = 0, -1
    for instruction in tiled.instructions:
        if instruction.op == "Conv" and instruction.inputs[position] != held:
            held = instruction.inputs[position]
            found += tiled.slots[held].nbytes
    return found


def test_two_axes_where_one_is_not_enough() -> None:
    """A row of all filters takes 30 KB, all rows of one filter 37 KB."""
    program = lowered(CONV)
    assert tile_to_fit(program, 16000, deepest=1).instructions == program.instructions
    tiled = tile_to_fit(program, 16000)
    conv = [i for i in tiled.instructions if i.op == "Conv"]
    assert len(conv) > 2
    assert max(sum(tiled.slots[s].nbytes for s in (*i.inputs, *i.outputs)) for i in conv) <= 16000
    assert {len(i.attributes["axes"]) for i in tiled.instructions if i.op == "Join"} == {2}  # type: ignore[arg-type]
    arrays = inputs_of(program)
    wanted = run(program, *arrays)[0]
    np.testing.assert_allclose(run(tiled, *arrays)[0], wanted, rtol=1e-4, atol=1e-4)


def test_the_cost_decides() -> None:
    """By default the bytes moved decide, so the small operand is loaded again; another cost may
    prefer few tiles.
    """
    program = lowered(CONV)
    little, few = (
        tile_to_fit(program, 16000),
        tile_to_fit(program, 16000, cost=lambda program, conv, tiling: tiling.tiles),
    )
    moved = [loads(tiled, 0) + loads(tiled, 1) for tiled in (little, few)]
    counts = [sum(i.op == "Conv" for i in tiled.instructions) for tiled in (little, few)]
    assert moved[0] < moved[1]
    assert counts[0] >= counts[1]


def test_budgets_by_memory() -> None:
    program = lowered(CONV)
    place = lambda conv, operand: "weights" if operand == 1 else "acts"  # noqa: E731
    tiled = tile_to_fit(program, {"acts": 9000, "weights": 5000}, place=place)
    conv = [i for i in tiled.instructions if i.op == "Conv"]
    assert len(conv) > 1
    for each in conv:
        assert tiled.slots[each.inputs[1]].nbytes <= 5000
        assert tiled.slots[each.inputs[0]].nbytes + tiled.slots[each.outputs[0]].nbytes <= 9000


def test_tiles_do_not_cut_blocks_of_layouts() -> None:
    blocks = Layouts(
        (Layout("NCHW", "NHWC"), Layout("OIHW", "OHWI16o")), (Layout("NCHW", "NCHW16c"),)
    )
    weights = ",".join(["1"] * (64 * 8 * 9))
    source = f"""g (float[1,8,32,32] x) => (float[1,64,30,30] y) {{
        w = Constant<value = float[64,8,3,3] {{{weights}}}>() y = Conv(x, w) }}"""
    program = with_layouts(lowered(source), {"Conv": blocks}, interface=True)
    tiled = tile_to_fit(program, 22000)
    verify_layouts(tiled, {"Conv": blocks})
    conv = [i for i in tiled.instructions if i.op == "Conv"]
    assert {tiled.slots[i.outputs[0]].sizes[1] % 16 for i in conv} == {0}
    assert len(conv) > 4
    (instruction,) = program.instructions
    assert split(program, instruction, {1: 8}) is None


def test_three_axes_where_two_are_not_enough() -> None:
    """Three rows of all columns take 2.3 KB, all filters 4.6 KB."""
    program = lowered(
        "g (float[1,8,24,24] x, float[16,8,3,3] w) => (float[1,16,22,22] y) { y = Conv(x, w) }"
    )
    assert tile_to_fit(program, 2000, (1, 2, 3), deepest=2).instructions == program.instructions
    tiled = tile_to_fit(program, 2000, (1, 2, 3))
    conv = [i for i in tiled.instructions if i.op == "Conv"]
    assert max(sum(tiled.slots[s].nbytes for s in (*i.inputs, *i.outputs)) for i in conv) <= 2000


def test_the_search_measures_each_axis_once() -> None:
    """The bands of an axis are measured by themselves, and tiles share the results of outer axes."""
    program = lowered(
        "g (float[1,32,56,56] x, float[64,32,3,3] w) => (float[1,64,54,54] y) { y = Conv(x, w) }"
    )
    calls = []

    def counted(*given):
        calls.append(given[2:])
        return REGIONS["Conv"](*given)

    tiled = tile_to_fit(program, 6000, (1, 2, 3), {**REGIONS, "Conv": counted})
    tiles = sum(i.op == "Conv" for i in tiled.instructions)
    assert tiles > 1000
    assert len(calls) < 2 * tiles


LONG = "g (float[6,600] x, float[600,10] w) => (float[6,10] y) { y = MatMul(x, w) }"


@pytest.mark.parametrize("budget", [600, 2000, 5000, 40000])
def test_a_long_sum_in_parts(budget: int) -> None:
    """One result element needs 4.8 KB of operands; each part continues from the partial sum."""
    program = lowered(LONG)
    tiled = tile_to_fit(program, budget, (0, 1), sums=SUMS)
    dots = [i for i in tiled.instructions if i.op == "DotGeneral"]
    touched = [{*i.inputs, *i.outputs} - {-1} for i in dots]
    assert max(sum(tiled.slots[slot].nbytes for slot in slots) for slots in touched) <= budget
    x, w = inputs_of(program)
    staged = plan_staged(tiled, Memory("dram"), Memory("sram", 2 * budget)).program
    for one in (tiled, staged):
        np.testing.assert_allclose(run(one, x, w)[0], x @ w, rtol=1e-4, atol=1e-4)
    stages = [i.attributes.get(STAGE) for i in dots]
    assert set(stages) == ({None} if budget == 40000 else {"first", "middle", "last"})


def test_misfit_names_the_excess_bytes() -> None:
    program = lowered(LONG)
    assert tile_to_fit(program, 600, (0, 1)).instructions == program.instructions
    assert not misfit(program, 600, (0, 1), sums=SUMS)
    assert misfit(program, 10, (0, 1), sums=SUMS).startswith("its smallest tile takes")
