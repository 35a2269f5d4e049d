"""Convolutions of many channels hold sums between blocks of them, for vectors of any width."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import STRICT, Library, random_inputs
from sampling import sampled

from smelt.native.kernels.convolution import channel_blocks

FLAGS = {
    "no vectors": ("-DSMELT_NO_DISPATCH", "-DLANES=1"),
    "any CPU": ("-DSMELT_NO_DISPATCH",),
    "this CPU": (),
}
SHAPES = {
    "a last block of one channel": ("[1,13,7,6]", "[32,13,3,3]", "pads = [1,1,1,1]"),
    "whole blocks, narrow panels too": ("[2,12,5,4]", "[77,12,2,3]", "pads = [1,0,0,2]"),
    "groups with strides": ("[1,10,9,7]", "[66,5,3,3]", "group = 2, strides = [2,1]"),
    "bands of other lengths": ("[2,7,19,17]", "[40,7,3,3]", "pads = [1,1,1,1]"),
    "a long kernel": ("[1,8,40]", "[64,8,11]", "pads = [5,5]"),
    "channels in one block": ("[1,3,5,5]", "[32,3,3,3]", ""),
    "pixels of a line": ("[1,9,1,3]", "[45,9,1,1]", ""),
    "dilated beyond the image": ("[1,7,9,9]", "[32,7,3,3]", "dilations = [8,8], pads = [8,8,8,8]"),
}


def _graphs() -> dict[str, str]:
    graphs = {}
    for name, (x, w, attributes) in SHAPES.items():
        filters, spatial = w[1:].split(",")[0], ",".join("STU"[: x.count(",") - 1])
        result = f"[{x[1]},{filters},{spatial}]"
        call = f"Conv{f'<{attributes}>' if attributes else ''}"
        head = f"g (float{x} x, float{w} w"
        graphs[name] = f"{head}) => (float{result} y) {{ y = {call}(x, w) }}"
        graphs[f"{name}, finished"] = (
            f"{head}, float[{filters}] b, float[1,{filters},{','.join('1' * (x.count(',') - 1))}] s)"
            f" => (float{result} y) {{ c = {call}(x, w, b) m = Mul(c, s) y = Relu(m) }}"
        )
    return graphs


@pytest.fixture(scope="module", params=FLAGS.values(), ids=FLAGS)
def library(request: pytest.FixtureRequest) -> Library:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channel_blocks, "NEAR", 0)
        patch.setattr(channel_blocks, "BLOCK", 32 * 9 * 4)
        return Library(_graphs(), flags=(*STRICT, *request.param), constant="w b")


@pytest.mark.parametrize("name", sampled(_graphs(), 2))
def test_blocks_add_up_to_the_whole(library: Library, name: str) -> None:
    library.check(name, random_inputs(library.models[name].source), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_inf_reach_only_their_own_results(library: Library, bad: float) -> None:
    name = "a last block of one channel, finished"
    inputs = random_inputs(library.models[name].source)
    inputs[0][0, 2, 3, 3] = bad
    library.check(name, inputs, rtol=1e-4, atol=2e-5)


def test_sums_are_held_where_channels_are_too_many_to_stay_near() -> None:
    """Nothing is held of a convolution whose band and weights stay near: no memory is taken."""

    def memory(channels: int) -> int:
        graph = f"""g (float[1,{channels},8,8] x, float[32,{channels},3,3] w) => (float[1,32,8,8] y)
            {{ y = Conv<pads = [1,1,1,1]>(x, w) }}"""
        built = Library({"g": graph}, constant="w").models["g"]
        return built.artifact.plan.memory.arena_bytes - 4 * channels * 10 * 10

    assert memory(64) < 4 * 32 * 64 <= memory(400)
