"""Initial states of zeros are dropped from recurrent layers."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.control_flow.drop_zero_state import drop_zero_state

WEIGHTS = (
    "float[1,8,3] w = {" + ",".join(["0.25", "-0.5", "0.125"] * 8) + "}, "
    "float[1,8,2] r = {" + ",".join(["0.5", "-0.25"] * 8) + "}"
)
G = "g (float[T,B,3] x) => (float[T,1,B,2] y, float[1,B,2] h, float[1,B,2] c)"
LSTM = "y, h, c = LSTM<hidden_size=2>"
SHAPE = "b = Shape<start=1,end=2>(x) s = Concat<axis=0>(one, b, two)"
NUMBERS = "int64[1] one = {1}, int64[1] two = {2}"

ZEROS = {
    "filled": "ConstantOfShape(s)",
    "filled with a zero": "ConstantOfShape<value = float[1] {0}>(s)",
    "spread": "Expand(zero, s)",
}


@pytest.mark.parametrize("made", ZEROS.values(), ids=ZEROS.keys())
def test_zeros_of_an_open_size_go(made: str) -> None:
    check_rewrite(
        drop_zero_state,
        f"{G} <{WEIGHTS}, {NUMBERS}, float zero = {{0}}> "
        f"{{ {SHAPE} z = {made} {LSTM}(x, w, r, , , z, z) }}",
        f"{G} <{WEIGHTS}> {{ {LSTM}(x, w, r) }}",
        modes=("normal",),
    )


def test_parts_of_zeros_go() -> None:
    """The states of all layers are built at once, and each layer takes a part."""
    check_rewrite(
        drop_zero_state,
        f"{G} <{WEIGHTS}, int64[1] zero = {{0}}, {NUMBERS}> {{ b = Shape<start=1,end=2>(x) "
        f"s = Concat<axis=0>(two, b, two) z = ConstantOfShape(s) p = Slice(z, zero, one, zero) "
        f"{LSTM}(x, w, r, , , p, p) }}",
        f"{G} <{WEIGHTS}> {{ {LSTM}(x, w, r) }}",
        modes=("normal",),
    )


def test_zeros_of_both_directions_go() -> None:
    """TensorFlow's exporter joins the states of two layers."""
    g = "g (float[T,B,3] x) => (float[T,2,B,2] y)"
    weights = WEIGHTS + ", " + WEIGHTS.replace(" w =", " w2 =").replace(" r =", " r2 =")
    both = "ww = Concat<axis=0>(w, w2) rr = Concat<axis=0>(r, r2)"
    layer = 'LSTM<hidden_size=2, direction="bidirectional">'
    check_rewrite(
        drop_zero_state,
        f"{g} <{weights}, {NUMBERS}> {{ {both} {SHAPE} z = ConstantOfShape(s) "
        f"zz = Concat<axis=0>(z, z) y = {layer}(x, ww, rr, , , zz, zz) }}",
        f"{g} <{weights}> {{ {both} y = {layer}(x, ww, rr) }}",
        modes=("normal",),
    )


def test_constants_go_and_others_stay() -> None:
    g = "g (float[T,1,3] x, float[1,1,2] first) => (float[T,1,1,2] y, float[1,1,2] h, float[1,1,2] c)"
    check_rewrite(
        drop_zero_state,
        f"{g} <{WEIGHTS}, float[1,1,2] z = {{0,0}}> {{ {LSTM}(x, w, r, , , first, z) }}",
        f"{g} <{WEIGHTS}> {{ {LSTM}(x, w, r, , , first) }}",
        modes=("normal",),
    )


def test_peepholes_stay_at_their_place() -> None:
    g = "g (float[T,1,3] x) => (float[T,1,1,2] y, float[1,1,2] h, float[1,1,2] c)"
    peep = "float[1,6] p = {1,2,3,4,5,6}"
    check_rewrite(
        drop_zero_state,
        f"{g} <{WEIGHTS}, float[1,1,2] z = {{0,0}}, {peep}> {{ {LSTM}(x, w, r, , , z, z, p) }}",
        f"{g} <{WEIGHTS}, {peep}> {{ {LSTM}(x, w, r, , , , , p) }}",
        modes=("normal",),
    )


@pytest.mark.parametrize(("layer", "gates"), [("GRU", 3), ("RNN", 1)])
def test_other_layers(layer: str, gates: int) -> None:
    g = "g (float[T,1,3] x) => (float[T,1,1,2] y)"
    w = ",".join(["0.25"] * gates * 6)
    r = ",".join(["-0.5"] * gates * 4)
    weights = f"float[1,{2 * gates},3] w = {{{w}}}, float[1,{2 * gates},2] r = {{{r}}}"
    check_rewrite(
        drop_zero_state,
        f"{g} <{weights}, float[1,1,2] z = {{0,0}}> "
        f"{{ y = {layer}<hidden_size=2>(x, w, r, , , z) }}",
        f"{g} <{weights}> {{ y = {layer}<hidden_size=2>(x, w, r) }}",
        modes=("normal",),
    )


def test_lengths_stay() -> None:
    g = "g (float[T,2,3] x, int32[2] n) => (float[T,1,2,2] y, float[1,2,2] h, float[1,2,2] c)"
    check_rewrite(
        drop_zero_state,
        f"{g} <{WEIGHTS}, float[1,2,2] z = {{0,0,0,0}}> {{ {LSTM}(x, w, r, , n, z, z) }}",
        f"{g} <{WEIGHTS}> {{ {LSTM}(x, w, r, , n) }}",
        feeds={"x": np.ones((3, 2, 3), np.float32), "n": np.array([3, 1], np.int32)},
    )


KEPT = {
    "ones": "ConstantOfShape<value = float[1] {1}>(s)",
    "minus zero": "ConstantOfShape<value = float[1] {-0.0}>(s)",
    "minus zero, spread": "Expand(minus, s)",
    "a number of the caller": "Expand(given, s)",
    "zeros and a one": "Pad(zeros, pads, number)",
    "zeros beside what a caller gives": "Concat<axis=2>(zeros, one)",
}


@pytest.mark.parametrize("made", KEPT.values(), ids=KEPT.keys())
def test_keeps(made: str) -> None:
    check_unchanged(
        drop_zero_state,
        "g (float[T,1,3] x, float given, float[1,1,1] one) => (float[T,1,1,2] y, float[1,1,2] h, float[1,1,2] c) "
        f"<{WEIGHTS}, int64[3] s = {{1,1,2}}, float minus = {{-0.0}}, float number = {{1}}, "
        "float[1,1,1] zeros = {0}, int64[6] pads = {0,0,0,0,0,1}> "
        f"{{ z = {made} {LSTM}(x, w, r, , , z, z) }}",
    )


def test_keeps_states_that_loops_or_callers_give() -> None:
    check_unchanged(
        drop_zero_state,
        "g (float[T,1,3] x, float[1,1,2] h0) => (float[T,1,1,2] y) "
        f"<{WEIGHTS}> {{ y = LSTM<hidden_size=2>(x, w, r, , , h0, h0) }}",
    )
