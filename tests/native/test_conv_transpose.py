"""Transposed convolutions against ONNX Runtime: as products, and what these do not take."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, ops, random_inputs, with_constants

import smelt

CASES = {
    "doubled": ("[2,8,9,7]", "[8,5,2,2]", "strides = [2,2]"),
    "overlapping": ("[1,8,8,6]", "[8,5,4,4]", "strides = [2,2], pads = [1,1,1,1]"),
    "uneven": (
        "[1,6,7,6]",
        "[6,3,3,5]",
        "strides = [2,3], pads = [1,0,2,1], output_padding = [1,2]",
    ),
    "gaps": ("[1,5,6,8]", "[5,3,2,2]", "strides = [3,4]"),
    "dilated": ("[1,4,6,7]", "[4,3,3,3]", "dilations = [2,3], strides = [2,2]"),
    "dense": ("[1,7,9,5]", "[7,4,3,3]", "pads = [1,1,1,1]"),
    "few pixels": ("[1,9,2,3]", "[9,6,4,4]", "strides = [2,2], pads = [1,1,1,1]"),
    "one pixel": ("[2,12,1,1]", "[12,7,3,3]", ""),
    "grouped": ("[2,12,6,6]", "[12,3,3,2]", "group = 3, strides = [2,2]"),
    "grouped few pixels": ("[1,10,3,3]", "[10,4,2,2]", "group = 2, strides = [2,2]"),
    "one dim": ("[1,6,40]", "[6,3,8]", "strides = [4], pads = [2,2]"),
    "far apart": ("[1,4,9]", "[4,2,40]", "strides = [20]"),
    "three dims": ("[1,4,3,4,5]", "[4,3,2,3,2]", "strides = [2,1,2], pads = [1,0,0,0,1,1]"),
    "blocks": ("[1,5,24,30]", "[5,13,2,2]", "strides = [2,2]"),
    "depthwise": ("[1,6,5,5]", "[6,1,3,3]", "group = 6, strides = [2,2]"),
    "no samples": ("[0,6,5,7]", "[6,2,3,3]", ""),
    "no channels": ("[1,4,0,5]", "[4,2,3,3]", "strides = [2,2]"),
}
"""Image, weights and attributes. The last three are not products."""


def _graph(x: str, w: str, attributes: str, finished: bool) -> str:
    """With a bias, Relu and another operand if ``finished``."""
    samples, rank = x[1:-1].split(",", maxsplit=1)[0], x.count(",") - 1
    group = int(attributes.partition("group = ")[2].partition(",")[0] or 1)
    filters = int(w[1:-1].split(",")[1]) * group
    sizes = ",".join("STU"[:rank])
    call = f"ConvTranspose<{attributes}>" if attributes else "ConvTranspose"
    inputs = f"float{x} x, float{w} w"
    result = f"float[{samples},{filters},{sizes}] y"
    if not finished:
        return f"g ({inputs}) => ({result}) {{ y = {call}(x, w) }}"
    inputs += f", float[{filters}] b, float[1,{filters}{',1' * rank}] r"
    return f"g ({inputs}) => ({result}) {{ c = {call}(x, w, b) d = Relu(c) y = Add(d, r) }}"


GRAPHS = {
    f"{name}{' finished' if finished else ''}": _graph(*case, finished)
    for name, case in CASES.items()
    for finished in (False, True)
}


@pytest.fixture(scope="module", params=["", "w b"], ids=["computed", "constant"])
def library(request: pytest.FixtureRequest) -> Library:
    return Library(GRAPHS, constant=request.param)


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_onnx_runtime(library: Library, name: str) -> None:
    """Weights that are constants are laid out when the model is compiled, others are not."""
    built = library.models[name]
    library.check(name, random_inputs(built.source), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["overlapping", "uneven", "few pixels", "grouped", "blocks"])
def test_this_process_agrees_with_numpy(name: str) -> None:
    """With the widest vectors that this CPU has."""
    model = with_constants(GRAPHS[f"{name} finished"], 23, "w b")
    inputs = random_inputs(model)
    wanted = smelt.compile(model, target="host", engine="numpy")(*inputs)
    given = smelt.compile(model, target="host", engine="native", threads=2)(*inputs)
    np.testing.assert_allclose(given[0], wanted[0], rtol=1e-4, atol=1e-5)


def test_the_result_overwrites_the_added_operand() -> None:
    call = "c = ConvTranspose<strides = [2,2]>(x, w) e = Exp(z) y = Add(c, e)"
    graph = f"g (float[1,8,6,6] x, float[8,4,2,2] w, float[1,4,12,12] z) => (float[1,4,12,12] y) {{ {call} }}"
    library = Library({"m": graph}, constant="w")
    built = library.models["m"]
    assert ops(built.artifact) == ["Exp", "ConvTranspose"]
    library.check("m", random_inputs(built.source), rtol=1e-4, atol=1e-5)


def test_products_take_no_more_memory_than_what_they_are_made_of() -> None:
    """One filter of 4x4 has 16 products a pixel, and its image 8 numbers: 64 KiB for one of 32."""
    graph = "g (float[1,8,32,32] x, float[8,1,4,4] w) => (float[1,1,66,66] y) { y = ConvTranspose<strides = [2,2]>(x, w) }"
    artifact = smelt.compile(with_constants(graph, 23, "w"), target="c")
    assert artifact.report["arena_bytes"] == 0


def test_infinity_stays_where_it_is_seen() -> None:
    """No other element of the result sees it, not even times 0."""
    graph = "g (float[1,4,5,7] x, float[4,2,2,2] w) => (float[1,2,10,14] y) { y = ConvTranspose<strides = [2,2]>(x, w) }"
    library = Library({"m": graph}, constant="w")
    x = np.ones((1, 4, 5, 7), np.float32)
    x[0, 1, 2, 3], x[0, 0, 4, 6] = np.inf, np.nan
    (y,) = library.run("m", [x])
    finite = np.isfinite(y[0]).all(axis=0)
    expected = np.ones((10, 14), bool)
    expected[4:6, 6:8] = expected[8:10, 12:14] = False
    np.testing.assert_array_equal(finite, expected)
