"""What a Slice takes, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from smelt.ir import text
from smelt.ir.constants import Constants
from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.rows import FIRST, LAST, cut_of_rows, rows_taken
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.slices import cuts_of
from smelt.passes.base import PassContext
from smelt.runtime.runner import open_runner

EDGES = st.one_of(st.integers(-8, 8), st.sampled_from([FIRST, LAST]))
STEPS = st.integers(-3, 3).filter(bool)


@settings(max_examples=60, deadline=None)
@given(size=st.integers(1, 6), start=EDGES, end=EDGES, step=STEPS)
def test_rows_are_those_of_the_runtime(size: int, start: int, end: int, step: int) -> None:
    assume(step > 0 or end != LAST)  # runtimes differ
    model = text.parse(
        f"g (int64[{size}] x) => (int64[K] y) <int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, "
        f"int64[1] a = {{0}}, int64[1] t = {{{step}}}> {{ y = Slice(x, s, e, a, t) }}"
    )
    (taken,) = open_runner(model)(np.arange(size))
    assert taken.tolist() == list(rows_taken(size, (start, end, step)))


@given(size=st.integers(0, 6), start=EDGES, end=EDGES, step=STEPS)
def test_a_cut_of_rows_takes_them(size: int, start: int, end: int, step: int) -> None:
    rows = rows_taken(size, (start, end, step))
    assert list(rows_taken(size, cut_of_rows(rows))) == list(rows)


UNKNOWN = {
    "an axis twice": "int64[2] s = {0,0}, int64[2] e = {1,1}, int64[2] a = {0,-2}",
    "backward to the largest number": "int64[1] s = {0}, int64[1] e = {9223372036854775807}, "
    "int64[1] a = {0}, int64[1] t = {-1}",
}


@pytest.mark.parametrize("operands", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_slices_without_meaning_are_unknown(operands: str) -> None:
    more = ", t" if " t " in operands else ""
    model = text.parse(
        f"g (float[3,4] x) => (float[K,L] y) <{operands}> {{ y = Slice(x, s, e, a{more}) }}"
    )
    PassContext.of(model)
    assert cuts_of(model.graph[0], Constants()) is None


@pytest.mark.parametrize("axis", range(-3, 4))
def test_a_slice_cuts_the_axis_that_it_names(axis: int) -> None:
    model = text.parse(
        f"g (float[3,4] x) => (float[K,L] y) <int64[1] s = {{1}}, int64[1] e = {{3}}, "
        f"int64[1] a = {{{axis}}}> {{ y = Slice(x, s, e, a) }}"
    )
    PassContext.of(model)
    cuts = {axis % 2: (1, 3, 1)} if -2 <= axis < 2 else None
    assert cuts_of(model.graph[0], Constants()) == cuts


CUTS = {
    "in front": ("one, end, zero", "Max(0, N - 40)"),
    "behind": ("zero, least, zero", "Max(0, N - 40)"),
    "every second row": (
        "zero, end, zero, two",
        "floor(N/1099511627776 + 1099511627775/1099511627776)",
    ),
}


@pytest.mark.parametrize(("cut", "left"), CUTS.values(), ids=CUTS.keys())
def test_a_dim_that_is_cut_again_and_again_keeps_one_bound(cut: str, left: str) -> None:
    cuts = "".join(f"s{i + 1} = Slice(s{i}, {cut}) " for i in range(40))
    model = text.parse(
        "g (float[N,4] s0) => (float[M,4] s40) <int64[1] one = {1}, int64[1] two = {2}, "
        f"int64[1] least = {{-1}}, int64[1] end = {{9223372036854775807}}, int64[1] zero = {{0}}> {{ {cuts} }}"
    )
    ShapeInference(model).infer_model()
    shapes = [node.outputs[0].shape for node in model.graph]
    assert len({str(shape[0]) for shape in shapes if shape is not None}) == 40
    assert str(shapes[-1]) == f"[{left},4]"


def test_every_second_row_is_written_as_half_of_the_rows() -> None:
    model = text.parse(
        "g (float[N,4] x) => (float[M,4] y) <int64[1] two = {2}, int64[1] end = {9223372036854775807}, "
        "int64[1] zero = {0}> { z = Slice(x, zero, end, zero, two) y = Neg(z) }"
    )
    ShapeInference(model).infer_model()
    rows = model.graph[0].outputs[0].shape
    assert rows is not None
    assert str(rows[0]) == str(expression_of(rows[0])) == "floor(N/2 + 1/2)"
