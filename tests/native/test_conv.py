"""Convolutions and pooling against ONNX Runtime, over windows, groups and odd sizes."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, compile_text, ops, random_inputs

CONVS = {
    "plain": ("[1,3,8,8]", "[5,3,3,3]", ""),
    "padded": ("[2,3,9,7]", "[4,3,3,3]", "pads = [1,1,1,1]"),
    "uneven pads": ("[1,2,6,6]", "[3,2,3,2]", "pads = [2,0,1,1]"),
    "strided": ("[1,3,11,9]", "[6,3,3,3]", "strides = [2,3], pads = [1,1,1,1]"),
    "dilated": ("[1,2,12,12]", "[3,2,3,3]", "dilations = [2,3], pads = [2,2,2,2]"),
    "window larger than the image": ("[1,1,2,2]", "[1,1,5,5]", "pads = [2,2,2,2]"),
    "grouped": ("[2,6,7,7]", "[9,2,3,3]", "group = 3, pads = [1,1,1,1]"),
    "depthwise": ("[1,5,10,10]", "[5,1,3,3]", "group = 5, pads = [1,1,1,1]"),
    "depthwise strided": ("[1,5,10,10]", "[10,1,3,3]", "group = 5, strides = [2,2]"),
    "pointwise": ("[2,7,5,9]", "[6,7,1,1]", ""),
    "pointwise strided": ("[1,4,8,8]", "[5,4,1,1]", "strides = [2,2]"),
    "one pixel": ("[1,4,1,1]", "[5,4,1,1]", ""),
    "wide": ("[1,2,3,150]", "[5,2,3,3]", "pads = [1,1,1,1]"),
    "narrow": ("[1,2,70,2]", "[5,2,3,3]", "pads = [1,1,1,1]"),
    "same upper": ("[1,2,7,8]", "[3,2,3,3]", 'auto_pad = "SAME_UPPER", strides = [2,2]'),
    "same lower": ("[1,2,7,8]", "[3,2,2,2]", 'auto_pad = "SAME_LOWER"'),
    "valid": ("[1,2,7,8]", "[3,2,2,2]", 'auto_pad = "VALID"'),
    "one dim": ("[2,3,20]", "[4,3,5]", "pads = [2,2], strides = [2]"),
    "three dims": ("[1,2,5,6,7]", "[3,2,3,2,3]", "pads = [1,0,1,1,1,1], strides = [2,1,2]"),
    "depthwise uneven": ("[1,6,9,11]", "[6,1,3,5]", "group = 6, strides = [2,3], pads = [1,2,0,3]"),
    "depthwise dilated": (
        "[2,3,14,9]",
        "[6,1,3,3]",
        "group = 3, dilations = [2,3], strides = [3,2], pads = [2,3,2,3]",
    ),
    "depthwise in bands": ("[1,2,70,60]", "[2,1,3,3]", "group = 2, pads = [1,1,1,1]"),
    "depthwise line": ("[1,4,30]", "[4,1,5]", "group = 4, pads = [2,2]"),
    "many pixels": ("[1,7,9,13]", "[19,7,1,1]", ""),
    "grouped pixels": ("[2,6,6,9]", "[14,3,1,1]", "group = 2"),
    "two panels": ("[1,3,9,8]", "[29,3,3,3]", "pads = [1,1,1,1]"),
    "in bands": ("[1,2,40,17]", "[8,2,3,3]", "pads = [1,2,1,0], strides = [1,2]"),
    "patches": ("[1,3,30,20]", "[9,3,10,10]", "strides = [10,10]"),
    "grouped strided": ("[1,8,9,9]", "[10,4,3,3]", "group = 2, strides = [2,2], pads = [1,1,1,1]"),
    "dilated far": (
        "[2,3,17,19]",
        "[20,3,3,3]",
        "dilations = [8,9], pads = [8,9,8,9]",
    ),
    "dilated beyond": (
        "[1,2,5,4]",
        "[10,1,3,4]",
        "group = 2, dilations = [6,3], pads = [6,9,7,5], strides = [2,3]",
    ),
    "dilated by parts of rows": (
        "[2,6,28,23]",
        "[42,3,3,3]",
        "group = 2, dilations = [9,7], pads = [9,7,9,7]",
    ),
    "dilated with strides": (
        "[1,5,21,33]",
        "[13,5,2,3]",
        "dilations = [12,10], pads = [12,10,3,14], strides = [3,2]",
    ),
    "results that see padding only": (
        "[1,3,9,10]",
        "[37,3,3,3]",
        "dilations = [12,14], pads = [20,30,15,17]",
    ),
    "dilated line": ("[2,3,21]", "[5,3,5]", "dilations = [7], pads = [14,10]"),
    "weights that are fetched": ("[1,11,7,7]", "[672,11,3,3]", "pads = [1,1,1,1]"),
    "long rows": ("[1,5,3,31]", "[44,5,2,3]", "pads = [1,0,0,2], dilations = [2,1]"),
    "far pixels": ("[2,129,9,13]", "[40,129,1,1]", "strides = [2,3]"),
    "far pixels, padded": ("[1,128,6,8]", "[35,128,1,1]", "strides = [3,2], pads = [1,0,2,3]"),
    "no samples": ("[0,3,8,8]", "[5,3,3,3]", ""),
}


def _conv(x: str, w: str, attributes: str, relu: bool, bias: bool) -> str:
    spatial = "?," * (x.count(",") - 1)
    filters = w[1:].split(",", maxsplit=1)[0]
    samples = x[1:].split(",", maxsplit=1)[0]
    shape = f"[{samples},{filters},{spatial[:-1].replace('?', 'S')}]"
    names = iter("STUV")
    shape = "".join(next(names) if letter == "S" else letter for letter in shape)
    declared = f", float[{filters}] b" if bias else ""
    call = f"Conv{f'<{attributes}>' if attributes else ''}(x, w{', b' if bias else ''})"
    body = f"c = {call} y = Relu(c)" if relu else f"y = {call}"
    return f"g (float{x} x, float{w} w{declared}) => (float{shape} y) {{ {body} }}"


GRAPHS = {
    f"{name}{' relu' if number % 2 else ''}": _conv(*case, relu=number % 2 > 0, bias=number % 2 > 0)
    for number, (name, case) in enumerate(CONVS.items())
}
"""Every other one has a bias and a Relu; ``test_equals_reference`` draws them, and other steps."""


@pytest.fixture(scope="module", params=["", "w b"], ids=["computed", "constant"])
def library(request: pytest.FixtureRequest) -> Library:
    return Library(GRAPHS, constant=request.param)


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_onnx_runtime(library: Library, name: str) -> None:
    """Weights that are constants are laid out when the model is compiled, others are not."""
    built = library.models[name]
    assert ops(built.artifact) == (["smelt.c::ConvRelu"] if "relu" in name else ["Conv"])
    library.check(name, random_inputs(built.source), rtol=1e-4, atol=1e-5)


def test_weights_that_are_not_finite_meet_the_padding() -> None:
    conv = "Conv<dilations = [1,16], pads = [0,16,0,16]>(x, w)"
    weights = ", ".join(["nan"] + ["0.5"] * 11)
    graph = (
        f"g (float[1,1,1,40] x) => (float[1,4,1,40] y) <float[4,1,1,3] w = {{{weights}}}> "
        f"{{ y = {conv} }}"
    )
    library = Library({"conv": graph})
    y = library.run("conv", [np.ones((1, 1, 1, 40), np.float32)])[0]
    assert np.isnan(y[0, 0]).all()
    assert np.isfinite(y[0, 1:]).all()


def test_numbers_that_are_not_finite_reach_the_results_that_see_them() -> None:
    weights = ", ".join(["0.5"] * 8 * 9)
    graph = (
        f"g (float[1,1,20,20] x) => (float[1,8,20,20] y) <float[8,1,3,3] w = {{{weights}}}> "
        "{ y = Conv<dilations = [9,9], pads = [9,9,9,9]>(x, w) }"
    )
    library = Library({"conv": graph})
    image = np.ones((1, 1, 20, 20), np.float32)
    image[0, 0, 3, 4], image[0, 0, 19, 19] = np.nan, -np.inf
    y = library.run("conv", [image])[0]
    nan = {(h, w) for h in (3, 12) for w in (4, 13)}
    infinite = {(h, w) for h in (10, 19) for w in (10, 19)}
    for filter_ in y[0]:
        assert {tuple(map(int, at)) for at in np.argwhere(np.isnan(filter_))} == nan
        assert {tuple(map(int, at)) for at in np.argwhere(np.isneginf(filter_))} == infinite


POOLS = {
    "max": "MaxPool<kernel_shape = [3,3]>",
    "max padded": "MaxPool<kernel_shape = [3,2], pads = [1,1,1,0], strides = [2,2]>",
    "max dilated": "MaxPool<kernel_shape = [2,2], dilations = [3,2]>",
    "max ceil": "MaxPool<kernel_shape = [3,3], strides = [2,2], ceil_mode = 1>",
    "max same": 'MaxPool<kernel_shape = [3,3], strides = [2,2], auto_pad = "SAME_UPPER">',
    "average": "AveragePool<kernel_shape = [3,3]>",
    "average padded": "AveragePool<kernel_shape = [3,3], pads = [1,1,1,1]>",
    "average counting pads": "AveragePool<kernel_shape = [3,3], pads = [1,1,1,1], count_include_pad = 1>",
    "average ceil": "AveragePool<kernel_shape = [3,3], strides = [2,2], ceil_mode = 1>",
    "average ceil counting": "AveragePool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1], ceil_mode = 1, count_include_pad = 1>",
}


def test_pools_agree_with_onnx_runtime() -> None:
    graphs = {
        name: f"g (float[2,3,9,8] x) => (float[2,3,S,T] y) {{ y = {call}(x) }}"
        for name, call in POOLS.items()
    }
    graphs["max 1d"] = (
        "g (float[2,3,9] x) => (float[2,3,S] y) { y = MaxPool<kernel_shape = [3]>(x) }"
    )
    graphs["average 3d"] = (
        "g (float[1,2,5,6,7] x) => (float[1,2,S,T,U] y) "
        "{ y = AveragePool<kernel_shape = [2,3,2], strides = [2,1,2]>(x) }"
    )
    library = Library(graphs)
    for name, built in library.models.items():
        library.check(name, random_inputs(built.source))


def test_nan_in_a_window_is_its_maximum() -> None:
    library = Library(
        {"m": "g (float[1,1,1,4] x) => (float[1,1,1,3] y) { y = MaxPool<kernel_shape = [1,2]>(x) }"}
    )
    x = np.array([np.nan, 1, 2, 3], np.float32).reshape(1, 1, 1, 4)
    np.testing.assert_array_equal(library.run("m", [x])[0].reshape(-1), [np.nan, 2, 3])


def test_a_depthwise_convolution_overwrites_an_image_that_nothing_else_reads() -> None:
    conv = "Conv<pads = [1,1,1,1], group = 8>"
    head = "g (float[2,8,20,20] x, float[8,1,3,3] w, float[8,8,1,1] v) => (float[2,8,20,20] y)"
    body = f"a = Conv(x, v) b = {conv}(a, w) c = {conv}(b, w)"
    library = Library(
        {
            "alone": f"{head} {{ {body} y = Conv(c, v) }}",
            "read again": f"{head} {{ {body} d = Add(a, b) e = Add(c, d) y = Conv(e, v) }}",
        },
        constant="w v",
    )
    for name, built in library.models.items():
        library.check(name, random_inputs(built.source), rtol=1e-4, atol=1e-4)
    memory = library.models["alone"].artifact.plan.memory
    assert memory.arena_bytes < 2 * 4 * 2 * 8 * 20 * 20


def test_a_convolution_that_something_else_reads_stays_one() -> None:
    graph = "g (float[1,1,4,4] x, float[1,1,3,3] w) => (float[1,1,2,2] y, float[1,1,2,2] c) { c = Conv(x, w) y = Relu(c) }"
    assert ops(compile_text(graph)) == ["Conv", "Relu"]


def test_the_result_of_a_fused_convolution_is_never_stored() -> None:
    body = "c = Conv(x, w) r = Relu(c) y = Conv(r, w)"
    graph = f"g (float[1,1,6,6] x, float[1,1,3,3] w) => (float[1,1,2,2] y) {{ {body} }}"
    artifact = compile_text(graph)
    assert ops(artifact) == ["smelt.c::ConvRelu", "Conv"]
    names = [row.value for row in artifact.plan.memory.rows()]
    assert len([name for name in names if "scratch" not in name]) == 1
