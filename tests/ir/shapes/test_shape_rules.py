"""smelt's own shape rules, which replace those of the library."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.errors import InternalError, InvalidModel
from smelt.ir import text
from smelt.ir.cloning import clone_model
from smelt.ir.shapes import shape_rules
from smelt.ir.shapes.inference import ShapeInference


@pytest.mark.parametrize(
    ("target", "dims"),
    [("[0,0,-1]", "N,C,6"), ("[-1,3]", "2*C*N,3"), ("[0,-1]", "N,6*C")],
)
def test_minus_one_in_a_reshape_is_resolved(target: str, dims: str) -> None:
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
def test_constant_of_shape_has_the_tracked_sizes(sizes: str, shape: str) -> None:
    model = text.parse(f"g (float[N,M] x) => (y) {{ {sizes} y = ConstantOfShape(s) }}")
    ShapeInference(model).infer_model()
    found = model.graph.outputs[0].shape
    assert found is not None
    assert ",".join(str(dim) for dim in found.dims) == shape


def test_constant_of_shape_of_unknown_sizes_has_a_rank_at_most() -> None:
    model = text.parse(
        "g (int64[2] s, int64[R] t) => (y, z) { y = ConstantOfShape(s) z = ConstantOfShape(t) }"
    )
    ShapeInference(model).infer_model()
    known, unknown = (value.shape for value in model.graph.outputs)
    assert known is not None
    assert [isinstance(dim, int) for dim in known.dims] == [False, False]
    assert unknown is None


def failing(context: object, node: object) -> None:
    """Return a rule that raises an unexpected exception."""
    raise AttributeError("no such thing")


def test_a_failing_rule_of_smelt_is_an_internal_error() -> None:
    model = text.parse("g (float[2] x) => (y) { y = Neg(x) }")
    model.graph[0].name = "here"
    with pytest.raises(InternalError, match="shape rule of Neg") as caught:
        shape_rules._checked_rule(failing)(ShapeInference(model)._context, model.graph[0])
    assert caught.value.code == "E907"
    assert "'here'" in caught.value.at[0]


def test_a_rule_of_the_library_that_fails_leaves_the_result_unknown() -> None:
    model = text.parse("g (float[2] x) => (y) { y = Neg(x) }")
    context, node = ShapeInference(model)._context, model.graph[0]
    shape_rules._checked_rule(shape_rules._contained(failing))(context, node)
    assert node.outputs[0].shape is None


def test_only_rules_of_the_library_are_contained() -> None:
    from onnx_shape_inference import OpShapeInferenceRegistry

    ShapeInference(text.parse("g (float[2] x) => (y) { y = Neg(x) }"))
    assert not shape_rules._is_library_rule(shape_rules.infer_if)
    assert shape_rules._is_library_rule(OpShapeInferenceRegistry.get)


IMPOSSIBLE = {
    "a Slice of a scalar": "g (float x, int64[1] s) => (y) { y = Slice(x, s, s) }",
    "a constant Slice of a scalar": "g (float x) => (y) { s = Constant<value_ints=[0]>() y = Slice(x, s, s) }",
    "Unique along an axis too far": "g (float[2,3] x) => (y) { y = Unique<axis=2>(x) }",
    "Unique along an axis too low": "g (float[2,3] x) => (y) { y = Unique<axis=-3>(x) }",
    "Unique along an axis of a scalar": "g (float x) => (y) { y = Unique<axis=0>(x) }",
    "a Pad that leaves less than nothing": "g (float[2,3] x) => (y) { p = Constant<value_ints=[-1,0,-2,0]>() y = Pad(x, p) }",
    "bands of no type": "g (int64 k, float a) => (y) { y = MelWeightMatrix<output_datatype=-1>(k, k, k, a, a) }",
}


@pytest.mark.parametrize("graph", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_impossible_operands_are_refused(graph: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        ShapeInference(text.parse(graph)).infer_model()
    assert caught.value.code == "E317"


def test_starts_of_another_rank_leave_the_shape_unknown() -> None:
    model = text.parse("g (float[2,3] x, int64 s, int64 e) => (y) { y = Slice(x, s, e) }")
    ShapeInference(model).infer_model()
    shape = model.graph.outputs[0].shape
    assert shape is None or not shape.is_static()


def test_a_pad_may_give_an_empty_result() -> None:
    graph = "g (float[2,3] x) => (y) { p = Constant<value_ints=[-1,0,-1,0]>() y = Pad(x, p) }"
    model = text.parse(graph)
    ShapeInference(model).infer_model()
    assert model.graph.outputs[0].shape == [0, 3]


TOLD_BY_NUMBERS = {
    "bands of a spectrum": (
        "n = Constant<value_int=8>() l = Constant<value_int=16>() y = MelWeightMatrix(n, l, l, a, a)",
        "9,8",
    ),
    "bands of any spectrum": ("y = MelWeightMatrix(k, k, k, a, a)", "_,_"),
    "frames": (
        "w = Constant<value_floats=[1.0,1.0]>() n = Constant<value_int=1>() y = STFT(x, n, w)",
        "2,2,2,2",
    ),
    "any repeats": ("y = Tile(x, r)", "_,_"),
    "repeats": ("t = Constant<value_ints=[2,3]>() y = Tile(x, t)", "4,9"),
}


@pytest.mark.parametrize(("body", "dims"), TOLD_BY_NUMBERS.values(), ids=TOLD_BY_NUMBERS.keys())
def test_dims_whose_text_is_a_number_become_ints(body: str, dims: str) -> None:
    model = text.parse(f"g (float[2,3] x, int64[2] r, int64 k, float a) => (y) {{ {body} }}")
    ShapeInference(model).infer_model()
    shape = model.graph.outputs[0].shape
    assert shape is not None
    assert ",".join(str(d) if isinstance(d, int) else "_" for d in shape.dims) == dims


MIXED = {
    "RMSNormalization": ("y = RMSNormalization(h, f)", ["FLOAT"]),
    "Attention": (
        "y, k, v = Attention<q_num_heads=2, kv_num_heads=2>(f3, f3, h3, , f4, h4)",
        ["FLOAT", "FLOAT", "FLOAT16"],
    ),
    "BatchNormalization": (
        "y, m, v = BatchNormalization<training_mode=1>(h, f, f, f, f)",
        ["FLOAT16", "FLOAT", "FLOAT"],
    ),
}


@pytest.mark.parametrize(("body", "types"), MIXED.values(), ids=MIXED.keys())
@pytest.mark.parametrize("opset", [23, 24])
def test_each_result_has_the_type_of_the_operands_that_its_schema_names(
    body: str, types: list[str], opset: int
) -> None:
    model = text.parse(
        f"""<ir_version: 11, opset_import: ["": {opset}]>
        g (float16[2,4] h, float[4] f, float[1,5,4] f3, float16[1,5,4] h3, float[1,2,3,2] f4,
           float16[1,2,3,2] h4) => (y) {{ {body} }}"""
    )
    ShapeInference(model).infer_model()
    (node,) = model.graph
    assert [output.dtype.name for output in node.outputs if output.dtype] == types


def test_inference_of_a_copy_leaves_the_types_of_its_model() -> None:
    model = text.parse(
        """<ir_version: 11, opset_import: ["": 23]>
        g (float16[2,4] x, float[4] s) => (float[2,4] y) { y = RMSNormalization(x, s) }"""
    )
    ShapeInference(clone_model(model)).infer_model()
    assert model.graph.outputs[0].dtype == ir.DataType.FLOAT
