"""Layers in bands wherever most is live: signals, U-Nets, transformers; the bits stay."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import compile_text

import smelt
from smelt.errors import Unsupported
from smelt.ir import text
from smelt.native.rewrite.band_regions import BAND_REGIONS
from smelt.native.rewrite.bands import in_bands
from smelt.native.rewrite.segments import live_bytes
from smelt.program.chips.overlap import STORE
from smelt.program.instruction import Program
from smelt.runtime.inputs import random_inputs

RNG = np.random.default_rng(5)


def weights(name: str, *shape: int) -> str:
    values = ",".join(f"{x:.2f}" for x in RNG.uniform(-0.5, 0.5, int(np.prod(shape))))
    return f"{name} = Constant<value = float{list(shape)} {{{values}}}>()"


SIGNAL = (
    f"g (float[1,4,300] x) => (float[n,m,l] y) {{ {weights('w0', 8, 4, 5)} {weights('w1', 8, 8, 3)} "
    f"{weights('w2', 2, 8, 4)} a = Conv<pads=[2,2]>(x, w0) b = Relu(a) "
    "c = Conv<dilations=[4], pads=[8,0]>(b, w1) d = Add(c, b) e = Relu(d) "
    "y = Conv<strides=[3]>(e, w2) }"
)
U_NET = (
    f"g (float[1,3,32,24] x) => (float[n,m,h,v] y) {{ {weights('w0', 8, 3, 3, 3)} "
    f"{weights('w1', 8, 8, 3, 3)} {weights('w2', 8, 8, 2, 2)} {weights('w3', 8, 16, 3, 3)} "
    f"{weights('w4', 1, 8, 1, 1)} a = Conv<pads=[1,1,1,1]>(x, w0) s = Relu(a) "
    "p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(s) b = Conv<pads=[1,1,1,1]>(p, w1) "
    "u = ConvTranspose<strides=[2,2]>(b, w2) c = Concat<axis=1>(u, s) "
    "d = Conv<pads=[1,1,1,1]>(c, w3) e = Relu(d) y = Conv(e, w4) }"
)
FEED_FORWARD = (
    f"g (float[1,40,16] x) => (float[1,40,16] y) {{ {weights('g', 16)} {weights('w0', 16, 64)} "
    f"{weights('b0', 64)} {weights('w1', 64, 16)} n = LayerNormalization(x, g) "
    "a = MatMul(n, w0) b = Add(a, b0) c = Gelu(b) d = MatMul(c, w1) y = Add(d, x) }"
)
ATTENTION = (
    f"g (float[1,48,8] x) => (float[1,48,8] y) {{ {weights('w', 8, 24)} {weights('o', 8, 8)} "
    "h = Constant<value_ints=[1,48,2,4]>() j = Constant<value_ints=[1,48,8]>() "
    "a = MatMul(x, w) q, k, v = Split<axis=2, num_outputs=3>(a) qr = Reshape(q, h) "
    "kr = Reshape(k, h) vr = Reshape(v, h) qt = Transpose<perm=[0,2,1,3]>(qr) "
    "kt = Transpose<perm=[0,2,3,1]>(kr) vt = Transpose<perm=[0,2,1,3]>(vr) s = MatMul(qt, kt) "
    "p = Softmax(s) m = MatMul(p, vt) t = Transpose<perm=[0,2,1,3]>(m) r = Reshape(t, j) "
    "y = MatMul(r, o) }"
)
SPREAD = (
    f"g (float[1,4,19,17] x) => (float[n,m,h,v] y) {{ {weights('w0', 4, 6, 3, 4)} "
    f"{weights('w1', 1, 6, 1, 1)} a = Exp(x) "
    "b = ConvTranspose<strides=[2,3], pads=[1,0,0,2], dilations=[2,1]>(a, w0) c = Relu(b) "
    "y = Conv(c, w1) }"
)
NETWORKS = {
    "transposed convolutions": (SPREAD, 0.5),
    "signals": (SIGNAL, 0.3),
    "a U-Net": (U_NET, 0.7),
    "feed-forward": (FEED_FORWARD, 0.5),
    "attention": (ATTENTION, 0.5),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "a U-Net")) for name in NETWORKS],
)
def test_the_bits_are_those_of_whole_layers(name: str) -> None:
    source, share = NETWORKS[name]
    model = text.parse(source)
    whole = smelt.compile(model, target="c")
    budget = int(share * whole.plan.facts["arena_bytes"])
    small = smelt.compile(model, target="c", arena=budget)
    assert small.plan.facts["arena_bytes"] <= budget
    assert small.plan.facts["bands"] > 1
    inputs = random_inputs(model, {})
    np.testing.assert_array_equal(small(*inputs)[0], whole(*inputs)[0])


def test_fewest_bands_that_fit() -> None:
    model = text.parse(FEED_FORWARD)
    whole = smelt.compile(model, target="c").plan.facts["arena_bytes"]
    bands = [
        smelt.compile(model, target="c", arena=whole // part).plan.facts["bands"] for part in (2, 4)
    ]
    assert bands[0] < bands[1]


def program(source: str) -> Program:
    steps = compile_text(source).plan.steps
    assert isinstance(steps, Program)
    return steps


def test_a_result_that_is_read_later_is_stored_share_by_share() -> None:
    made = program(U_NET)
    layers = made.instructions[:3]  # the first convolution, its Relu in it, and the pool
    skip = next(s for s in layers[0].outputs)
    count = next(i for i, each in enumerate(layers) if each.op == "MaxPool") + 1
    banded = in_bands(made, layers[:count], 5, 2, BAND_REGIONS, [skip])
    assert banded is not None
    stores = [each for each in banded.instructions if each.op == STORE]
    shares = [
        (each.attributes["starts"], each.attributes["stops"])
        for each in stores
        if each.outputs == (skip,)
    ]
    assert shares == [((0,), (10,)), ((10,), (20,)), ((20,), (30,)), ((30,), (32,))]
    assert in_bands(made, layers[:count], 5, 2, BAND_REGIONS, []) is not None


@pytest.mark.parametrize(
    "body",
    [
        "y = Softmax<axis=1>(a)",
        "y = Concat<axis=1>(a, x)",
        "y = Slice(a, one, two, one)",
        "f = Constant<value_ints=[12,4]>() y = Reshape(a, f)",
        "y = MatMul(x, a)",
    ],
    ids=["along the rows", "joined rows", "rows of it", "rows that end elsewhere", "all rows"],
)
def test_operators_across_rows_are_not_split(body: str) -> None:
    ints = "one = Constant<value_ints=[1]>() two = Constant<value_ints=[5]>()"
    made = program(
        f"g (float[1,6,8] x) => (float[n,m,l] y) {{ {ints} a = Exp(x) {body} }}".replace(
            "(float[1,6,8] x)", "(float[1,6,6] x)" if "MatMul" in body else "(float[1,6,8] x)"
        )
    )
    axis = len(made.slots[made.outputs[0]].shape) - 2
    assert in_bands(made, made.instructions, 3, axis, BAND_REGIONS) is None


def test_an_arena_too_small_for_the_other_layers_is_refused() -> None:
    with pytest.raises(Unsupported, match="too small") as caught:
        smelt.compile(text.parse(ATTENTION), target="c", arena=1000)
    assert caught.value.code == "E405"


def test_live_bytes_are_those_of_the_plan() -> None:
    plan = compile_text(FEED_FORWARD).plan.memory
    assert max(live_bytes(plan)) <= plan.arena_bytes
