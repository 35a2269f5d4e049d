"""The instructions of each family of operators: axes from the front, constants as attributes."""

from __future__ import annotations

import pytest
from lowered import lowered, only
from written import ops, shape_of

from smelt.errors import ErrorList

ATTRIBUTES = {
    "axes count from the front": (
        "float[2,3,4] x",
        "y = Softmax<axis=-1>(x)",
        {"axis": 2},
    ),
    "a transpose has its permutation": ("float[2,3,4] x", "y = Transpose(x)", {"perm": (2, 1, 0)}),
    "reductions over all dims list them": (
        "float[2,3] x",
        "y = ReduceMax(x)",
        {"axes": (0, 1), "keepdims": 1},
    ),
    "axes given as a constant": (
        "float[2,3] x",
        "a = Constant<value_ints=[-1]>() y = ReduceSum<keepdims=0>(x, a)",
        {"axes": (1,), "keepdims": 0},
    ),
    "global pooling is a reduction": (
        "float[2,3,4,5] x",
        "y = GlobalAveragePool(x)",
        {"axes": (2, 3), "keepdims": 1},
    ),
    "bounds that are constants": (
        "float[2] x",
        "h = Constant<value_float=6.0>() y = Clip(x, , h)",
        {"min": None, "max": 6.0},
    ),
    "defaults are filled in": (
        "float[2] x",
        "y = LeakyRelu(x)",
        {"alpha": pytest.approx(0.01, rel=1e-7)},
    ),
    "slices with their axes": (
        "float[4,6] x",
        "s = Constant<value_ints=[1]>() e = Constant<value_ints=[-1]>() a = Constant<value_ints=[-1]>() y = Slice(x, s, e, a)",
        {"starts": (1,), "ends": (-1,), "axes": (1,), "steps": (1,)},
    ),
    "pads for every dim": (
        "float[4,6] x",
        "p = Constant<value_ints=[1,2]>() a = Constant<value_ints=[-1]>() y = Pad(x, p, , a)",
        {"pads": (0, 1, 0, 2), "mode": "constant", "value": 0},
    ),
    "padding as numbers": (
        "float[1,1,6,5] x, float[1,1,4,4] w",
        'y = Conv<auto_pad="SAME_LOWER", strides=[2,2]>(x, w)',
        {
            "kernel_shape": (4, 4),
            "strides": (2, 2),
            "dilations": (1, 1),
            "pads": (1, 2, 1, 1),
            "group": 1,
        },
    ),
    "gelu names its form": ("float[2] x", "y = Gelu(x)", {"approximate": "none"}),
}


@pytest.mark.parametrize(("inputs", "body", "expected"), ATTRIBUTES.values(), ids=ATTRIBUTES.keys())
def test_attributes(inputs: str, body: str, expected: dict[str, object]) -> None:
    assert only(f"g ({inputs}) => (y) {{ {body} }}") == expected


REPLACED = {
    "flatten": ("float[2,3,4] x", "y = Flatten(x)", ["Reshape"]),
    "squeeze": ("float[1,3] x", "y = Squeeze(x)", ["Reshape"]),
    "a reshape to the same shape": ("float[B,3] x", "s = Shape(x) y = Reshape(x, s)", ["Shape"]),
    "identity": ("float[2] x", "y = Identity(x)", []),
    "dropout": ("float[2] x", "y = Dropout(x)", []),
    "one operand": ("float[2] x", "y = Sum(x)", []),
    "three operands": ("float[2] x", "y = Max(x, x, x)", ["Max", "Max"]),
    "mean": ("float[2] x", "y = Mean(x, x, x)", ["Add", "Add", "Div"]),
    "split": ("float[4,2] x", "y, z = Split<num_outputs=2>(x)", ["Slice", "Slice"]),
    "space to depth": (
        "float[1,1,4,4] x",
        "y = SpaceToDepth<blocksize=2>(x)",
        ["Reshape", "Transpose", "Reshape"],
    ),
    "constant of shape": (
        "float[1] x",
        "s = Constant<value_ints=[2,2]>() y = ConstantOfShape(s)",
        ["Expand"],
    ),
}


@pytest.mark.parametrize(("inputs", "body", "expected"), REPLACED.values(), ids=REPLACED.keys())
def test_operators_that_become_others(inputs: str, body: str, expected: list[str]) -> None:
    assert ops(lowered(f"g ({inputs}) => (y) {{ {body} }}")) == expected


def test_symbolic_shapes_stay_in_the_slots() -> None:
    program = lowered(
        "g (float[B,S,24] x) => (y) { s = Constant<value_ints=[0,0,4,6]>() y = Reshape(x, s) }"
    )
    assert [str(dim) for dim in shape_of(program, program.outputs[0])] == ["B", "S", "4", "6"]


def test_constants_get_slots_when_they_are_read() -> None:
    program = lowered(
        "g (float[2] x) => (y) { a = Constant<value_floats=[1.0,2.0]>() b = Constant<value_float=9.0>() y = Add(x, a) }"
    )
    ((slot, array),) = program.constants.items()
    assert program.instructions[0].inputs == (program.inputs[0], slot)
    assert not array.flags.writeable


def test_outputs_may_be_inputs_constants_and_repeated() -> None:
    program = lowered(
        "g (float[2] x) => (a, b, c) { a = Identity(x) b = Constant<value_float=1.0>() c = Identity(a) }"
    )
    (x,), (a, b, c) = program.inputs, program.outputs
    assert (a, c) == (x, x)
    assert b in program.constants


def test_instructions_name_their_origin() -> None:
    model = "g (float[2] x) => (y) { [first] h = Exp(x) [second] y = Neg(h) }"
    assert [i.origin for i in lowered(model).instructions] == ["first", "second"]


REFUSED = {
    "steps of the run": ("float[1,8,1] x, int64 a", "y = STFT(x, a, , a)", "computed while"),
    "training": (
        "float[2] x",
        "t = Constant<value_int=1>() u = Cast<to=9>(t) y = Dropout(x, , u)",
        "random",
    ),
    "random numbers": ("float[2] x", "y = RandomNormalLike(x)", "random numbers"),
    "a sequence": ("float[2] x", "s = SplitToSequence(x) y = SequenceAt(s, x)", "no memory can"),
    "an operator without a lowering": (
        "float[1,1,4,4] x, float[1,5] r",
        "y = MaxRoiPool<pooled_shape=[2,2]>(x, r)",
        "no lowering",
    ),
    "a function that is not inlined": ("float[2] x", "y = custom.Thing(x)", "declares no such"),
    "repeats for another rank": (
        "float[2] x",
        "r = Constant<value_ints=[2,3]>() y = Tile(x, r)",
        "2 repeats for 1 dims",
    ),
    "a rank that differs from run to run": (
        "float[N,1] x",
        "y = Squeeze(x)",
        "the rank is not known",
    ),
    "an axis out of range": ("float[2] x", "y = ArgMax<axis=3>(x)", "do not fit rank 1"),
}


@pytest.mark.parametrize(("inputs", "body", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_errors_give_the_reason(inputs: str, body: str, why: str) -> None:
    from smelt.ir import text
    from smelt.program.lower import lower

    model = text.parse(f"g ({inputs}) => (y) {{ {body} }}")
    from smelt.errors import InvalidModel
    from smelt.ir.shapes.inference import ShapeInference

    try:
        ShapeInference(model).infer_model()
    except InvalidModel:
        assert "axis" in body
        return
    with pytest.raises(ErrorList, match=why) as caught:
        lower(model)
    assert {error.code for error in caught.value.errors} == {"E201"}


def test_old_opsets_are_refused() -> None:
    from smelt.errors import Unsupported

    with pytest.raises(Unsupported, match="opset 6"):
        lowered("g (float[2] x) => (y) { y = Neg(x) }", opset=6)
    assert lowered("g (float[2] x) => (y) { y = Neg(x) }", opset=7).instructions


def test_a_normalization_with_more_outputs_trains_and_is_refused() -> None:
    with pytest.raises(ErrorList, match="in training mode"):
        lowered(
            "g (float[2,3] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3] y) "
            "{ y, mean, var, saved_mean, saved_var = BatchNormalization(x, s, b, m, v) }",
            opset=13,
        )


def test_attributes_unknown_to_a_lowering_are_refused_by_name() -> None:
    graph = 'g (float[2] x) => (float[2] y) { y = Cast<to=1, round_mode="down">(x) }'
    with pytest.raises(ErrorList, match="attribute 'round_mode'"):
        lowered(graph, opset=24)
