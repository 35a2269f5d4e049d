"""Random inputs are typed, repeatable, and in the range that their readers allow."""

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from smelt.errors import Unsupported, UsageError
from smelt.runtime.inputs import random_inputs
from smelt.runtime.runner import run

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'


def model(text: str) -> ir.Model:
    return ir.from_onnx_text(HEADER + text)


def test_shapes_follow_the_sizes_of_symbols():
    graph = model("g (float[B,S,4] x, int64[B] n) => (float[B,S,4] y) { y = Neg(x) }")
    x, n = random_inputs(graph, {"B": 2, "S": 0})
    assert x.shape == (2, 0, 4)
    assert n.shape == (2,)


def test_expressions_over_symbols_are_evaluated():
    graph = model("g (float[B] x) => (float[B] y) { y = Neg(x) }")
    graph.graph.inputs[0].shape = ir.Shape([ir.SymbolicDim("2*B + 1")])
    assert random_inputs(graph, {"B": 3})[0].shape == (7,)


def test_equal_seeds_give_equal_inputs():
    graph = model("g (float[8] x) => (float[8] y) { y = Neg(x) }")
    first, again, other = (random_inputs(graph, {}, seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.array_equal(random_inputs(graph, {})[0], random_inputs(graph, {}, 0)[0])


TYPES = "float double float16 bfloat16 float8e4m3fn int8 uint8 int4 uint4 int64 uint64 bool complex64 string"


@pytest.mark.parametrize("name", TYPES.split())
@pytest.mark.parametrize("mode", ["normal", "sparse", "moved", "edges"])
def test_every_element_type_has_values(name, mode):
    graph = model(f"g ({name}[4,3] x) => ({name}[4,3] y) {{ y = Identity(x) }}")
    (x,) = random_inputs(graph, {}, mode=mode)
    assert x.shape == (4, 3)
    if name != "string":
        assert x.dtype == graph.graph.inputs[0].dtype.numpy()


INDICES = {
    "gather": "g (int64[64] i) => (float[64,2] y) <float[5,2] t = {1,2,3,4,5,6,7,8,9,10}> { y = Gather(t, i) }",
    "through a cast": "g (int32[64] i) => (float[64,2] y) <float[5,2] t = {1,2,3,4,5,6,7,8,9,10}> { j = Cast<to = 7>(i)  y = Gather(t, j) }",
    "along an axis": "g (int64[64] i) => (float[2,64] y) <float[2,5] t = {1,2,3,4,5,6,7,8,9,10}> { y = Gather<axis = 1>(t, i) }",
    "elements": "g (int64[5,2] i) => (float[5,2] y) <float[5,2] t = {1,2,3,4,5,6,7,8,9,10}> { y = GatherElements(t, i) }",
    "table of symbolic size": "g (float[B,2] t, int64[64] i) => (float[64,2] y) { y = Gather(t, i) }",
}


@pytest.mark.parametrize("text", INDICES.values(), ids=INDICES.keys())
def test_indices_stay_inside_their_table(text):
    graph = model(text)
    inputs = random_inputs(graph, {"B": 5})
    indices = inputs[-1]
    assert 0 <= indices.min() <= indices.max() <= 4
    assert len(np.unique(indices)) > 1
    run(graph, inputs)


def test_sizes_fit_what_they_are_applied_to():
    graph = model(
        "g (float[2,3] x, int64[1] s, int64[2] e, int64[1] k) => (float[N] y, float[A,B] z, float[A,B] t, int64[A,B] i) "
        "{ y = Reshape(x, s)  z = Expand(x, e)  t, i = TopK(x, k) }"
    )
    run(graph, random_inputs(graph, {}))


def test_edges_hold_every_special_number():
    graph = model("g (bfloat16[1000] x) => (bfloat16[1000] y) { y = Identity(x) }")
    (x,) = random_inputs(graph, {}, mode="edges")
    wide = x.astype(np.float32)
    assert np.isnan(wide).any()
    assert (wide == np.inf).any()
    assert (wide == -np.inf).any()
    assert (np.signbit(wide) & (wide == 0)).any()
    tiny = ml_dtypes.finfo(ml_dtypes.bfloat16).smallest_subnormal
    assert (x == tiny).any()


def test_sparse_inputs_have_rows_of_zeros():
    graph = model("g (float[50,8] x) => (float[50,8] y) { y = Neg(x) }")
    (x,) = random_inputs(graph, {}, mode="sparse")
    assert (x == 0).all(axis=1).any()
    assert (x != 0).any()


def test_a_default_stays_and_moves_when_asked():
    graph = model(
        "g (float[3] x, float[3] w) => (float[3] y) <float[3] w = {1, 2, 3}> { y = Add(x, w) }"
    )
    assert random_inputs(graph, {})[1].tolist() == [1, 2, 3]
    assert random_inputs(graph, {}, mode="moved")[1].tolist() != [1, 2, 3]


def test_refuses_sizes_that_are_missing_impossible_or_huge():
    graph = model("g (float[B] x) => (float[B] y) { y = Neg(x) }")
    for sizes in ({}, {"B": 10**12}):
        with pytest.raises(UsageError) as caught:
            random_inputs(graph, sizes)
        assert caught.value.code == "E633"


def test_refuses_types_that_cannot_be_made_up():
    graph = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    graph.graph.inputs[0].type = None
    with pytest.raises(Unsupported) as caught:
        random_inputs(graph, {})
    assert caught.value.code == "E221"


@pytest.mark.parametrize(("mode", "largest"), [("wide", 100), ("far", 10_000)])
def test_tails_hold_large_numbers_zeros_subnormals_and_ties(mode, largest):
    graph = model("g (float[64,64] x) => (float[64,64] y) { y = Identity(x) }")
    (x,) = random_inputs(graph, {}, mode=mode)
    size = np.abs(x)
    assert largest / 2 < size.max() <= largest
    assert (x == 0).any()
    assert ((size > 0) & (size < np.finfo(np.float32).tiny)).any()
    assert (x == 0.5).sum() > 9
