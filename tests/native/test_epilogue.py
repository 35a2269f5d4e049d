"""What follows a product element by element is computed before the product is stored."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, random_inputs


def _conv(
    shape: str, weights: str, result: str, body: str, attributes: str = "", more: str = ""
) -> str:
    call = f"Conv{f'<{attributes}>' if attributes else ''}(x, w, b)"
    filters = weights[1:].split(",", maxsplit=1)[0]
    inputs = f"float{shape} x, float{weights} w, float[{filters}] b{more}"
    return f"g ({inputs}) => (float{result} y) {{ c = {call} {body} }}"


def _dot(left: str, right: str, result: str, body: str, more: str = "") -> str:
    return f"g (float{left} x, float{right} w{more}) => (float{result} y) {{ c = MatMul(x, w) {body} }}"


PADDED = "pads = [1,1,1,1]"
POINTWISE = ("[2,6,6,8]", "[7,6,1,1]", "[2,7,6,8]")
DIRECT = ("[2,6,6,8]", "[7,6,3,3]", "[2,7,6,8]")
IN_PLANES = ("[2,6,6,8]", "[6,1,3,3]", "[2,6,6,8]")
GROUPS = ("[2,6,6,8]", "[8,3,1,1]", "[2,8,6,8]")
ROWS = ("[2,5,9]", "[9,12]", "[2,5,12]")
CLIP = "l = Constant<value_float = -0.5>() h = Constant<value_float = 1.5>()"
FINISHED = {
    "pointwise, added": (_conv(*POINTWISE, "y = Add(c, z)", more=", float[2,7,6,8] z"), ["Add"]),
    "pointwise, added and clamped": (
        _conv(*POINTWISE, "s = Add(z, c) y = Relu(s)", more=", float[2,7,6,8] z"),
        ["Add", "Relu"],
    ),
    "pointwise, clipped": (_conv(*POINTWISE, f"{CLIP} y = Clip(c, l, h)"), ["Clip"]),
    "pointwise, clipped above by an input": (
        _conv(*POINTWISE, "y = Clip(c, , h)", more=", float h"),
        ["Clip"],
    ),
    "pointwise, scaled by filter": (
        _conv(*POINTWISE, "y = Mul(c, z)", more=", float[7,1,1] z"),
        ["Mul"],
    ),
    "pointwise, less a number": (_conv(*POINTWISE, "y = Sub(z, c)", more=", float[1] z"), ["Sub"]),
    "pointwise, by pixel": (
        _conv(*POINTWISE, "y = Add(c, z)", more=", float[2,1,6,8] z"),
        ["Add"],
    ),
    "pointwise in groups, gelu": (
        _conv(*GROUPS, "a = Gelu(c) y = Mul(a, z)", "group = 2", ", float[8,1,1] z"),
        ["Gelu", "Mul"],
    ),
    "direct, added and clamped": (
        _conv(*DIRECT, "s = Add(c, z) y = LeakyRelu(s)", PADDED, ", float[2,7,6,8] z"),
        ["Add", "LeakyRelu"],
    ),
    "direct, scaled by filter": (
        _conv(*DIRECT, "s = Mul(c, z) y = HardSwish(s)", PADDED, ", float[7,1,1] z"),
        ["Mul", "HardSwish"],
    ),
    "direct, its image added": (
        _conv("[1,6,6,8]", "[6,6,3,3]", "[1,6,6,8]", "y = Add(c, x)", PADDED),
        ["Add"],
    ),
    "pointwise, its image added": (
        _conv("[1,6,6,8]", "[6,6,1,1]", "[1,6,6,8]", "y = Add(c, x)"),
        ["Add"],
    ),
    "by planes, clipped": (
        _conv(*IN_PLANES, f"{CLIP} y = Clip(c, l, h)", f"group = 6, {PADDED}"),
        ["Clip"],
    ),
    "by planes, its image added": (
        _conv(*IN_PLANES, "s = Add(c, x) y = Tanh(s)", f"group = 6, {PADDED}"),
        ["Add", "Tanh"],
    ),
    "by planes, scaled by filter": (
        _conv(*IN_PLANES, "y = Mul(c, z)", f"group = 6, {PADDED}", ", float[6,1,1] z"),
        ["Mul"],
    ),
    "rows, added by column": (_dot(*ROWS, "y = Add(c, z)", ", float[12] z"), ["Add"]),
    "rows, by column, then all": (
        _dot(*ROWS, "s = Add(c, z) y = Add(v, s)", ", float[12] z, float[2,5,12] v"),
        ["Add", "Add"],
    ),
    "rows, by row": (_dot(*ROWS, "s = Mul(c, z) y = Erf(s)", ", float[2,5,1] z"), ["Mul", "Erf"]),
    "one row": (
        _dot("[1,9]", "[9,70]", "[1,70]", "s = Add(c, z) y = Sigmoid(s)", ", float[70] z"),
        ["Add", "Sigmoid"],
    ),
    "in a batch": (
        _dot("[3,5,9]", "[3,9,12]", "[3,5,12]", "y = Add(c, z)", ", float[3,1,1] z"),
        ["Add"],
    ),
}
KEPT = {
    "two readers": _conv(*POINTWISE, "n = Neg(c) e = Exp(c) y = Mul(n, e)"),
    "twice by one": _conv(*POINTWISE, "y = Mul(c, c)"),
    "by column of pixels": _conv(*POINTWISE, "y = Add(c, z)", more=", float[8] z"),
    "widened": _conv(
        "[1,6,1,32]", "[7,6,1,1]", "[3,7,1,32]", "y = Add(c, z)", more=", float[3,7,1,32] z"
    ),
    "to integers": _dot(*ROWS, "i = Cast<to = 6>(c) y = Cast<to = 1>(i)"),
    "columns of one matrix": _dot(*ROWS, "r = Transpose<perm = [0, 2, 1]>(c) y = Neg(r)").replace(
        "(float[2,5,12] y)", "(float[2,12,5] y)"
    ),
}
A_PRODUCT_AND_A_SUM = _conv(
    *POINTWISE, "p = Mul(c, z) s = Sub(p, z) y = Relu(s)", more=", float[7,1,1] z"
)
GRAPHS = {
    "a product and a sum": A_PRODUCT_AND_A_SUM,
    **{name: graph for name, (graph, _) in FINISHED.items()},
    **KEPT,
}


@pytest.fixture(scope="module", params=["", "w b"], ids=["computed", "constant"])
def library(request: pytest.FixtureRequest) -> Library:
    return Library(GRAPHS, constant=request.param)


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_onnx_runtime(library: Library, name: str) -> None:
    library.check(name, random_inputs(library.models[name].source), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FINISHED)
def test_is_one_instruction(library: Library, name: str) -> None:
    """But for convolutions of weights that are computed, whose pixels are gathered."""
    product, *others = library.models[name].artifact.plan.steps.instructions
    gathered = name.startswith("direct") and "w" not in library.constant
    apart = [part.op for other in others for part in other.parts or (other,)]
    steps = [step.op for step in product.epilogue] + apart
    assert steps == FINISHED[name][1]
    assert bool(others) == gathered


@pytest.mark.parametrize("name", KEPT)
def test_stays_apart(library: Library, name: str) -> None:
    steps = library.models[name].artifact.plan.steps.instructions
    assert not any(step.epilogue for step in steps)


def test_nan_and_infinities_go_through(library: Library) -> None:
    name = "pointwise, clipped"
    inputs = random_inputs(library.models[name].source)
    inputs[0][0, :, 0, :3] = [np.nan, np.inf, -np.inf]
    library.check(name, inputs, rtol=1e-4, atol=1e-5)


def test_a_sum_does_not_follow_a_product_at_once(library: Library) -> None:
    """A compiler may round the two once, and what should be 0 is not."""
    steps = library.models["a product and a sum"].artifact.plan.steps.instructions
    assert [[step.op for step in each.epilogue] for each in steps if each.op == "Conv"] == [["Mul"]]
