"""First layers in bands of rows: the same numbers in less memory, and what that costs."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx_ir as ir
import pytest
from c_library import compile_text, ops

import smelt
from smelt.errors import Unsupported, UsageError
from smelt.ir import text
from smelt.native.rewrite.row_bands import beginnings, in_bands
from smelt.program.chips.overlap import STORE
from smelt.program.instruction import Program
from smelt.runtime.inputs import random_inputs
from smelt.runtime.runner import open_runner

RNG = np.random.default_rng(3)


def weights(name: str, *shape: int) -> str:
    values = ",".join(f"{x:.2f}" for x in RNG.uniform(-0.5, 0.5, int(np.prod(shape))))
    return f"{name} = Constant<value = float{list(shape)} {{{values}}}>()"


@cache
def network(*, deep: bool = False) -> str:
    """A residual block and a pool, then layers of other kinds; the largest tensors are the first."""
    body = [
        weights("w0", 8, 3, 3, 3),
        weights("w1", 8, 8, 3, 3),
        weights("w2", 8, 1, 3, 3),
        weights("w3", 4, 8, 1, 1),
        "a = Conv<pads = [1,1,1,1]>(x, w0)",
        "b = Relu(a)",
        "c = Conv<pads = [1,1,1,1]>(b, w1)",
        "d = Add(c, b)",
        "e = Relu(d)",
        "f = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(e)",
    ]
    if deep:
        body += [
            "h = Conv<pads = [1,1,1,1], strides = [2,2], group = 8>(f, w2)",
            "i = Conv(h, w3)",
            "j = Sigmoid(i)",
            "y = Mul(i, j)",
        ]
    else:
        body.append("y = Abs(f)")
    return f"g (float[1,3,37,29] x) => (float[n,m,h,v] y) {{ {' '.join(body)} }}"


def arena(artifact: smelt.Artifact) -> int:
    found = artifact.plan.facts["arena_bytes"]
    assert isinstance(found, int)
    return found


def check(model: ir.Model, budget: int) -> smelt.Artifact:
    """Fits, and computes what the model says."""
    whole = smelt.compile(model, target="c")
    small = smelt.compile(model, target="c", arena=budget)
    assert arena(small) <= budget < arena(whole)
    inputs = random_inputs(model, {})
    for got, wanted in zip(small(*inputs), open_runner(model)(*inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    return small


@pytest.mark.parametrize("deep", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_residuals_windows_and_strides_in_bands(*, deep: bool) -> None:
    model = text.parse(network(deep=deep))
    whole = arena(smelt.compile(model, target="c"))
    small = check(model, whole // 2)
    chosen, first = small.plan.facts["choices"], small.plan.facts["choices"][0]
    assert first["layers"] == 0
    assert first["arena_bytes"] == whole
    assert [each["macs"] for each in chosen] == sorted(each["macs"] for each in chosen)
    sizes = [each["arena_bytes"] for each in chosen]
    assert sizes == sorted(sizes, reverse=True)
    taken = next(each for each in chosen if each["arena_bytes"] <= whole // 2)
    assert taken["macs"] == small.plan.facts["macs"] > first["macs"]
    assert small.plan.facts["bands"] == taken["bands"] > 1


def test_an_arena_of_exactly_what_it_takes_changes_nothing() -> None:
    whole = compile_text(network())
    same = compile_text(network(), arena=arena(whole))
    assert ops(same) == ops(whole)
    assert arena(same) == arena(whole)
    assert len(same.plan.facts["choices"]) == 1


def test_an_arena_that_is_large_enough_changes_nothing() -> None:
    files = dict(compile_text(network()).files)
    same = dict(compile_text(network(), arena=10**6).files)
    files.pop("report.json")
    same.pop("report.json")
    assert files == same


def test_an_arena_that_nothing_fits_is_refused_with_what_is_there() -> None:
    with pytest.raises(
        Unsupported, match=r"of 100 bytes is too small(?s:.*)layers in \d+ bands"
    ) as caught:
        smelt.compile(text.parse(network()), target="c", arena=100)
    assert caught.value.code == "E405"
    with pytest.raises(Unsupported, match="no layers need less memory"):
        compile_text(
            "g (float[64] x) => (float[64] y) { a = Softmax(x) b = Softmax(a) y = Add(a, b) }",
            arena=8,
        )
    with pytest.raises(UsageError, match="arena=-1"):
        compile_text(network(), arena=-1)


def test_an_image_of_open_size_is_not_cut() -> None:
    model = text.parse(network().replace("1,3,37,29", "B,3,37,29"))
    bounds = {"B": (1, 2)}
    whole = arena(smelt.compile(model, target="c", dims=bounds))
    assert arena(smelt.compile(model, target="c", dims=bounds, arena=whole)) == whole
    with pytest.raises(Unsupported, match="no layers need less memory"):
        smelt.compile(model, target="c", dims=bounds, arena=whole // 2)


def program(body: str, result: str = "float[n,m,h,v] y") -> Program:
    steps = compile_text(f"g (float[1,4,16,16] x) => ({result}) {{ {body} }}").plan.steps
    assert isinstance(steps, Program)
    return steps


@pytest.mark.parametrize(
    "body",
    [
        f"{weights('w', 4, 4, 3, 3)} a = Conv(x, w) y = Softmax<axis = 2>(a)",
        f"{weights('w', 4, 4, 3, 3)} a = Conv(x, w) b = GlobalAveragePool(x) y = Add(a, b)",
        f"{weights('w', 4, 4, 3, 3)} a = Conv(x, w) y = Transpose<perm = [0,1,3,2]>(a)",
    ],
)
def test_operators_across_rows_end_the_first_layers(body: str) -> None:
    assert list(beginnings(program(body))) == []


def test_a_value_that_others_read_is_no_inner_one() -> None:
    w = weights("w", 4, 4, 3, 3)
    made = program(
        f"{w} a = Conv(x, w) b = Abs(a) c = Conv(b, w) y = Abs(c) z = Softmax(b)",
        "float[n,m,h,v] y, float[k,l,i,j] z",
    )
    for layers in beginnings(made):
        outside = {made.slots[layer.outputs[0]].name for layer in layers[:-1]}
        assert "b" not in outside


def test_rows_of_constants_are_not_taken_for_those_of_images() -> None:
    """A constant with rows of its own would have to be cut, too: such layers stay whole."""
    w, k = weights("w", 4, 4, 3, 3), weights("k", 14, 14)
    made = program(f"{w} {k} a = Conv(x, w) b = Mul(a, k) y = Abs(b)")
    for layers in beginnings(made):
        assert in_bands(made, layers, 3) is None


def test_an_operand_that_every_band_reads_whole_leaves_the_layers_as_they_are() -> None:
    made = compile_text(
        "g (float[1,2,8,8] x) => (float[1,2,8,8] y) { a = Abs(x) b = MatMul(x, a) y = Abs(b) }"
    ).plan.steps
    assert isinstance(made, Program)
    found = list(beginnings(made))
    assert found
    assert all(in_bands(made, layers, 3) is None for layers in found)


def test_bands_are_stored_into_one_result() -> None:
    made = program(
        f"{weights('w', 4, 4, 3, 3)} a = Conv(x, w) y = MaxPool<kernel_shape = [2,2]>(a)"
    )
    (layers,) = beginnings(made)
    banded = in_bands(made, layers, 5)
    assert banded is not None
    stores = [each for each in banded.instructions if each.op == STORE]
    assert [each.attributes["starts"] for each in stores] == [(0,), (5,), (10,)]
    assert {each.outputs for each in stores} == {layers[-1].outputs}


@pytest.mark.slow
def test_quantized_layers_in_bands_have_the_same_bits() -> None:
    w = ",".join(str(int(x)) for x in RNG.integers(-9, 9, 4 * 4 * 9))
    quantize = "s = Constant<value_float = 0.1>() z = Constant<value = int8 {3}>() o = Constant<value = int8 {0}>()"
    layers = " ".join(
        f"c{i} = Conv<pads = [1,1,1,1]>(d{i}, e) q{i + 1} = QuantizeLinear(c{i}, s, z)"
        f" d{i + 1} = DequantizeLinear(q{i + 1}, s, z)"
        for i in range(3)
    )
    model = text.parse(f"""g (float[1,4,40,24] x) => (float[n,m,h,v] y) {{ {quantize}
        w = Constant<value = int8[4,4,3,3] {{{w}}}>() e = DequantizeLinear(w, s, o)
        q0 = QuantizeLinear(x, s, z) d0 = DequantizeLinear(q0, s, z) {layers}
        y = MaxPool<kernel_shape = [4,4], strides = [4,4]>(d3) }}""")
    whole = smelt.compile(model, target="c")
    small = smelt.compile(model, target="c", arena=arena(whole) - 64)
    inputs = random_inputs(model, {})
    np.testing.assert_array_equal(small(*inputs)[0], whole(*inputs)[0])
    assert small.plan.facts["bands"] > 1
