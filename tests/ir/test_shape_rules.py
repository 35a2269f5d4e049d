"""Rules of our own over the library's."""

from __future__ import annotations

import pytest

from smelt.errors import InternalError
from smelt.ir import shape_rules, text
from smelt.ir.shapes import ShapeInference


@pytest.mark.parametrize(
    ("target", "dims"),
    [("[0,0,-1]", "N,C,6"), ("[-1,3]", "2*C*N,3"), ("[0,-1]", "N,6*C")],
)
def test_what_minus_one_stands_for(target: str, dims: str) -> None:
    model = text.parse(
        f"g (float[N,C,2,3] x) => (y) {{ d = Constant<value_ints={target}>() y = Reshape(x, d) }}"
    )
    ShapeInference(model).infer_model()
    shape = model.graph.outputs[0].shape
    assert shape is not None
    assert ",".join(str(dim) for dim in shape.dims) == dims
    assert all(isinstance(dim, int) == str(dim).isdecimal() for dim in shape.dims)


LOST = {
    "a size through a float": "n = Shape<end=1>(x) f = Cast<to=1>(n) y = Cast<to=7>(f)",
    "a number through a float": "n = Constant<value_ints=[16777217]>() f = Cast<to=1>(n) y = Cast<to=7>(f)",
    "a number through a byte": "n = Constant<value_ints=[300]>() b = Cast<to=2>(n) y = Cast<to=7>(b)",
    "a product beyond 32 bits": "n = Constant<value_ints=[65536]>() i = Cast<to=6>(n) p = Mul(i, i) y = Cast<to=7>(p)",
}


@pytest.mark.parametrize("body", LOST.values(), ids=LOST.keys())
def test_elements_are_forgotten_where_a_type_is_too_narrow(body: str) -> None:
    model = text.parse(f"g (float[N] x) => (int64[1] y) {{ {body} }}")
    shapes = ShapeInference(model)
    shapes.infer_model()
    assert shapes.elements(model.graph.outputs[0]) is None
    assert model.graph.outputs[0].const_value is None


KEPT = {
    "n = Shape<end=1>(x) i = Cast<to=6>(n) y = Cast<to=7>(i)": "N",
    "n = Constant<value_ints=[-7]>() t = Constant<value_ints=[2]>() y = Div(n, t)": "-3",
    "n = Constant<value_ints=[200]>() b = Cast<to=2>(n) y = Cast<to=7>(b)": "200",
}


@pytest.mark.parametrize(("body", "element"), KEPT.items())
def test_elements_are_tracked(body: str, element: str) -> None:
    model = text.parse(f"g (float[N] x) => (int64[1] y) {{ {body} }}")
    shapes = ShapeInference(model)
    shapes.infer_model()
    assert [str(item) for item in shapes.elements(model.graph.outputs[0]) or ()] == [element]


def test_a_slope_of_higher_rank_raises_the_rank() -> None:
    model = text.parse("g (float[N,4] x, float[1,1,4] s) => (y) { y = PRelu(x, s) }")
    ShapeInference(model).infer_model()
    assert str(model.graph.outputs[0].shape) == "[1,N,4]"


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [
        ("s = Shape(x)", "N,M"),
        ("a = Shape<start=1>(x) s = Concat<axis=0>(a, a)", "M,M"),
        ("a = Shape(x) i = Constant<value_ints=[1,1]>() s = Gather(a, i)", "M,M"),
    ],
)
def test_what_is_filled_has_the_sizes_that_are_tracked(sizes: str, shape: str) -> None:
    model = text.parse(f"g (float[N,M] x) => (y) {{ {sizes} y = ConstantOfShape(s) }}")
    ShapeInference(model).infer_model()
    found = model.graph.outputs[0].shape
    assert found is not None
    assert ",".join(str(dim) for dim in found.dims) == shape


def test_what_is_filled_by_unknown_sizes_has_a_rank_at_most() -> None:
    model = text.parse(
        "g (int64[2] s, int64[R] t) => (y, z) { y = ConstantOfShape(s) z = ConstantOfShape(t) }"
    )
    ShapeInference(model).infer_model()
    known, unknown = (value.shape for value in model.graph.outputs)
    assert known is not None
    assert [isinstance(dim, int) for dim in known.dims] == [False, False]
    assert unknown is None


def failing(context: object, node: object) -> None:
    """A rule that stumbles."""
    raise AttributeError("no such thing")


def test_a_rule_of_ours_that_fails_is_our_fault() -> None:
    model = text.parse("g (float[2] x) => (y) { y = Neg(x) }")
    model.graph[0].name = "here"
    with pytest.raises(InternalError, match="shape rule of Neg") as caught:
        shape_rules._checked(failing)(ShapeInference(model)._context, model.graph[0])
    assert caught.value.code == "E907"
    assert "'here'" in caught.value.at[0]


def test_a_rule_of_the_library_that_fails_leaves_the_result_unknown() -> None:
    model = text.parse("g (float[2] x) => (y) { y = Neg(x) }")
    context, node = ShapeInference(model)._context, model.graph[0]
    shape_rules._checked(shape_rules._contained(failing))(context, node)
    assert node.outputs[0].shape is None


def test_only_rules_of_the_library_are_contained() -> None:
    from onnx_shape_inference import OpShapeInferenceRegistry

    ShapeInference(text.parse("g (float[2] x) => (y) { y = Neg(x) }"))
    assert not shape_rules._is_theirs(shape_rules.infer_if)
    assert shape_rules._is_theirs(OpShapeInferenceRegistry.get)
