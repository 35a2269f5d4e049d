"""Blocks, lists, states, compressed weights, classifiers and refusals of the Core ML reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from frontends.coreml.mil import constant, operation, package, read_one

from smelt.errors import ErrorList, InvalidModel, UsageError
from smelt.frontends.coreml import load
from smelt.frontends.coreml.registry import NOT_READ, READERS
from smelt.ir import scope
from smelt.ir.bounds import bounds_of
from smelt.mlpackage.interface import ArrayElement, Color, Feature, Image, Interface, MultiArray
from smelt.mlpackage.program import (
    Block,
    Constant,
    DictionaryType,
    Element,
    ListType,
    Named,
    Package,
    Program,
    StateType,
    TensorType,
)
from smelt.runtime.runner import run

F32 = TensorType(Element.FLOAT32, ())
I32 = TensorType(Element.INT32, ())
BOOL = TensorType(Element.BOOL, ())
F, I = np.float32, np.int32  # noqa: E741 - the element types of MIL
OPERATORS = Path(__file__).with_name("operators.txt").read_text("utf-8").split()
PAGE = Path(__file__).parents[3] / "docs/for-core-ml.md"


def vector(*dims: int | None, element: Element = Element.FLOAT32) -> TensorType:
    """The type of a tensor."""
    return TensorType(element, dims)


def read(inputs, operations, outputs, ios=17):
    """The Model of a program."""
    return load.model_of(package(inputs, operations, outputs, ios), "main")


def test_every_operator_of_ios_18_is_read_or_refused_by_name() -> None:
    """``operators.txt`` lists the 168 operators of the opset as coremltools 9.0 registers them."""
    assert len(OPERATORS) == 168
    known = {*READERS, *NOT_READ, "const"}
    assert set(OPERATORS) <= known
    assert known - set(OPERATORS) == {"coreml_update_state", "write_state"}
    assert not READERS.keys() & NOT_READ.keys()


def test_the_page_lists_every_operator() -> None:
    text = PAGE.read_text("utf-8").partition("## Reading packages")[2].partition("\n## ")[0]
    listed = {name for part in text.split("`")[1::2] for name in part.split()}
    assert set(OPERATORS) <= listed


def test_a_branch_reads_values_around_it() -> None:
    x = {"x": vector(2), "p": BOOL}
    yes = Block([operation("add", {"a": vector(2)}, x="%x", y="%x")], ["a"])
    no = Block([], ["x"])
    model = read(x, [operation("cond", {"y": vector(2)}, [yes, no], pred="%p")], ["y"])
    value = np.array([1, 2], F)
    assert np.array_equal(run(model, [value, np.array(True)])[0], 2 * value)
    assert np.array_equal(run(model, [value, np.array(False)])[0], value)


def loop(*, until: int):
    """While i < until: i, a = i + 1, a * 2."""
    condition = Block(
        [operation("less", {"c": BOOL}, x="%i", y=until)],
        ["c"],
        [Named("i", I32), Named("a", vector(2))],
    )
    body = Block(
        [
            operation("add", {"j": I32}, x="%i", y=1),
            operation("mul", {"b": vector(2)}, x="%a", y=2.0),
        ],
        ["j", "b"],
        [Named("i", I32), Named("a", vector(2))],
    )
    results = {"n": I32, "y": vector(2)}
    return operation("while_loop", results, [condition, body], loop_vars=[constant(0), "%x"])


@pytest.mark.parametrize("until", [0, 3])
def test_a_loop_runs_while_its_condition_holds(until: int) -> None:
    model = read({"x": vector(2)}, [loop(until=until)], ["n", "y"])
    count, y = run(model, [np.array([1, 3], F)])
    assert count == until
    assert np.array_equal(y, np.array([1, 3], F) * 2**until)


@pytest.mark.parametrize("length", [3, 1])
def test_a_list_keeps_what_is_written(length: int) -> None:
    """A list of dynamic length grows."""
    kind = ListType(vector(2), length)
    made = operation(
        "make_list",
        {"l0": kind},
        init_length=length,
        dynamic_length=length < 3,
        elem_shape=[constant(2)],
    )
    steps = [
        made,
        operation("list_write", {"l1": kind}, ls="%l0", index=2, value="%x"),
        operation(
            "list_scatter", {"l2": kind}, ls="%l1", indices=np.array([0, 1], I), value="%both"
        ),
        operation("list_length", {"n": I32}, ls="%l2"),
        operation("list_read", {"r": vector(2)}, ls="%l2", index=1),
        operation("list_gather", {"g": vector(2, 2)}, ls="%l2", indices=np.array([2, 0], I)),
    ]
    model = read({"x": vector(2), "both": vector(2, 2)}, steps, ["n", "r", "g"])
    x, both = np.array([5, 6], F), np.array([[1, 2], [3, 4]], F)
    count, at, rows = run(model, [x, both])
    assert count == 3
    assert np.array_equal(at, both[1])
    assert np.array_equal(rows, [x, both[0]])


def stateful(**changes) -> Package:
    """Read a state, add the input to it, write it, and return its double, read again."""
    kind = StateType(vector(2))
    steps = [
        operation("read_state", {"old": vector(2)}, input="%cache"),
        operation("add", {"sum": vector(2)}, x="%old", y="%x"),
        operation("write_state", {}, input="%cache", data="%sum"),
        operation("read_state", {"new": vector(2)}, input="%cache"),
        operation("mul", {"y": vector(2)}, x="%new", y=2.0),
    ]
    return package({"x": vector(2), "cache": kind}, steps, ["y"], 18)


def test_a_state_is_an_input_and_an_output() -> None:
    model = load.model_of(stateful(), "main")
    assert [value.name for value in model.graph.inputs] == ["x", "cache"]
    assert [value.name for value in model.graph.outputs] == ["y", "cache_out"]
    y, cache = run(model, [np.array([1, 2], F), np.array([10, 20], F)])
    assert np.array_equal(cache, [11, 22])
    assert np.array_equal(y, 2 * cache)


def test_a_state_that_is_only_read_is_no_output() -> None:
    steps = [operation("read_state", {"y": vector(2)}, input="%cache")]
    model = read({"cache": StateType(vector(2))}, steps, ["y"], 18)
    assert [value.name for value in model.graph.outputs] == ["y"]


def test_a_branch_must_not_write_a_state() -> None:
    write = Block([operation("write_state", {}, input="%cache", data="%x")], ["x"])
    steps = [operation("cond", {"y": vector(2)}, [write, Block([], ["x"])], pred="%p")]
    inputs = {"x": vector(2), "p": BOOL, "cache": StateType(vector(2))}
    with pytest.raises(ErrorList, match="a branch or loop body writes a state"):
        read(inputs, steps, ["y"], 18)


# -- compressed weights --------------------------------------------------------------------------


def weight(kind: str, dims: tuple[int, ...], ios: int = 18, **inputs) -> np.ndarray:
    """What a constexpr operator gives: the sum of its result and an input of zeros."""
    outputs = {"w": TensorType(Element.FLOAT32, dims)}
    if "sparse_b" in kind or "to_sparse" in kind:
        outputs = {"m": TensorType(Element.UINT1, dims), "d": TensorType(Element.FLOAT32, (9,))}
    steps = [operation(kind, outputs, **inputs)]
    if "d" in outputs:
        steps.append(
            operation(
                "constexpr_sparse_to_dense",
                {"w": TensorType(Element.FLOAT32, dims)},
                nonzero_data="%d",
                mask="%m",
            )
        )
    steps.append(operation("add", {"y": vector(*dims)}, x="%w", y="%x"))
    model = read({"x": vector(*dims)}, steps, ["y"], ios)
    return np.asarray(run(model, [np.zeros(dims, F)])[0])


DATA = np.arange(-8, 16).reshape(4, 6)


@pytest.mark.parametrize("element", [Element.INT8, Element.UINT8])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_affine_weights(element: Element, axis: int | None) -> None:
    data = DATA.astype(element.numpy)
    shape = () if axis is None else (DATA.shape[axis],)
    scale = np.full(shape, 0.5, F) * (1 + np.arange(max(shape, default=1)).reshape(shape) % 3)
    zero = (np.ones(shape) * 3).astype(element.numpy)
    wide = [1, 1]
    if axis is not None:
        wide[axis] = -1
    expected = scale.reshape(wide).astype(F) * (data.astype(F) - zero.reshape(wide).astype(F))
    for given in (zero, np.array(3, element.numpy) if axis is not None else F(3)):
        result = weight(
            "constexpr_affine_dequantize",
            (4, 6),
            16,
            quantized_data=data,
            scale=scale.astype(F),
            zero_point=given,
            axis=axis or 0,
        )
        np.testing.assert_allclose(result, expected)


@pytest.mark.parametrize("element", [Element.INT4, Element.UINT4, Element.INT8])
@pytest.mark.parametrize("blocks", [(1, 1), (4, 1), (1, 6), (4, 2), (2, 6), (2, 3), (1, 2)])
def test_block_wise_weights(element: Element, blocks: tuple[int, int]) -> None:
    data = (DATA % 16 - 8 * (element == Element.INT4)).astype(element.numpy)
    scale = np.arange(1, 1 + np.prod(blocks)).reshape(blocks).astype(F) / 4
    offset = (np.arange(np.prod(blocks)).reshape(blocks) % 4).astype(element.numpy)
    factor, shift = (
        np.kron(each, np.ones((4 // blocks[0], 6 // blocks[1]))) for each in (scale, offset)
    )
    inputs = {"data": constant(data, element), "scale": scale}
    name = "constexpr_blockwise_shift_scale"
    np.testing.assert_allclose(weight(name, (4, 6), **inputs), factor * data)
    result = weight(name, (4, 6), **inputs, offset=constant(offset, element))
    np.testing.assert_allclose(result, factor * (data.astype(F) - shift))


def test_a_palette_of_ios_16_has_packed_indices() -> None:
    """The example of the documentation: 2 bits each, the first in the lowest bits."""
    result = weight(
        "constexpr_lut_to_dense",
        (5,),
        16,
        indices=np.array([0b01101100, 0b11], np.uint8),
        lut=np.array([10, 11, 12, 13], F),
        shape=np.array([5], np.uint32),
    )
    assert result.tolist() == [10, 13, 12, 11, 13]


def test_palettes_of_groups() -> None:
    """The first example of the documentation."""
    indices = np.array([2, 3, 3, 0, 1, 0, 3, 0, 2, 1, 0, 3], np.uint8).reshape(6, 2)
    lut = np.array([1, 5, 9, 13, 2, 10, 18, 26], F).reshape(2, 1, 4, 1)
    result = weight(
        "constexpr_lut_to_dense", (6, 2), indices=constant(indices, Element.UINT2), lut=lut
    )
    expected = [[9, 13], [13, 1], [5, 1], [26, 2], [18, 10], [2, 26]]
    assert result.tolist() == expected


@pytest.mark.parametrize("axis", [1, 2])
def test_palettes_of_vectors(axis: int) -> None:
    """The second example of the documentation."""
    indices = np.array([0, 0, 1, 0, 1, 1, 0, 0], np.uint8).reshape(2, 2, 2)
    lut = np.array([1, 2, 3, 7, 8, 9], F).reshape(1, 1, 1, 2, 3)
    chosen = lut[0, 0, 0][indices]
    expected = np.moveaxis(chosen, 3, axis + 1).reshape((2, 6, 2) if axis == 1 else (2, 2, 6))
    result = weight(
        "constexpr_lut_to_dense",
        expected.shape,
        indices=constant(indices, Element.UINT1),
        lut=lut,
        vector_axis=axis,
    )
    assert np.array_equal(result, expected)
    if axis == 1:
        assert result[0, :, 0].tolist() == [1, 2, 3, 7, 8, 9]


MASK = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]], np.uint8)


def test_sparse_weights_of_both_opsets() -> None:
    data = np.arange(1, 10, dtype=F)
    expected = np.zeros((4, 4))
    expected[MASK > 0] = data
    bits = np.packbits(MASK.reshape(-1), bitorder="little")
    old = {"nonzero_data": data, "mask": bits, "shape": np.array([4, 4], np.uint32)}
    new = {"nonzero_data": data, "mask": constant(MASK, Element.UINT1)}
    assert np.array_equal(weight("constexpr_sparse_to_dense", (4, 4), 16, **old), expected)
    assert np.array_equal(weight("constexpr_sparse_to_dense", (4, 4), **new), expected)


def test_sparse_quantized_weights() -> None:
    """The example of the documentation."""
    result = weight(
        "constexpr_sparse_blockwise_shift_scale",
        (4, 4),
        data_mask=constant(MASK, Element.UINT1),
        nonzero_data=np.array([10, 11, 3, 4, 5, 6, 7, 8, 9], np.int8),
        scale=np.array([[0.1, 0.2, 0.3, 0.4]], F),
        offset=np.array([[1, 2, 3, 4]], np.int8),
    )
    expected = [0.9, 1.8, 0.2, 0.4, 0.6, 0.9, 1.2, 0.7, 1.4]
    np.testing.assert_allclose(result[MASK > 0], expected, rtol=1e-6)
    assert not result[MASK == 0].any()


def test_sparse_palettes() -> None:
    """The example of the documentation."""
    mask = np.array(
        [[1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 1], [0, 1, 1, 0, 1, 0], [0, 0, 0, 1, 0, 0]], np.uint8
    )
    result = weight(
        "constexpr_lut_to_sparse",
        (4, 6),
        indices_mask=constant(mask, Element.UINT1),
        indices_nonzero_data=constant(
            np.array([0, 1, 1, 0, 1, 1, 0, 0, 1], np.uint8), Element.UINT1
        ),
        lut=np.array([2, 3], F).reshape(1, 1, 2, 1),
    )
    assert result[mask > 0].tolist() == [2, 3, 3, 2, 3, 3, 2, 2, 3]


def test_cast_weights() -> None:
    half = np.array([0.5, 1.25], np.float16)
    result = weight("constexpr_cast", (2,), 16, source_val=half, output_dtype="fp32")
    assert np.array_equal(result, half.astype(F))


# -- the interface -------------------------------------------------------------------------------


def described(inputs: list[Feature], **kinds: TensorType) -> Package:
    """A package that returns the Relu of each input."""
    steps = [operation("relu", {f"{name}_y": kind}, x=f"%{name}") for name, kind in kinds.items()]
    made = package(kinds, steps, [f"{name}_y" for name in kinds])
    made.interfaces = {"main": Interface(inputs, [])}
    return made


def test_open_sizes_have_names_and_bounds() -> None:
    ranged = MultiArray(ArrayElement.FLOAT32, (2, 3), ((1, 8), (3, 3)))
    listed = MultiArray(ArrayElement.FLOAT32, (2, 4), (), ((2, 4), (6, 4)))
    endless = MultiArray(ArrayElement.FLOAT32, (2,), ((1, -1),))
    features = [Feature("a", ranged), Feature("b", listed), Feature("c", endless)]
    model = load.model_of(
        described(features, a=vector(None, 3), b=vector(None, 4), c=vector(None)), "main"
    )
    assert [str(value.shape) for value in model.graph.inputs] == ["[a_0,3]", "[b_0,4]", "[c_0]"]
    assert bounds_of(model.graph) == {"a_0": (1, 8), "b_0": (2, 6)}


def test_an_image_is_noted() -> None:
    image = Image(5, 4, Color.BGR)
    model = load.model_of(described([Feature("x", image)], x=vector(1, 3, 4, 5)), "main")
    assert model.graph.inputs[0].metadata_props["smelt.image"] == "BGR 5x4"


def test_a_function_is_chosen_by_name() -> None:
    functions = {
        name: described([], x=vector(2)).program.functions["main"] for name in ("small", "large")
    }
    several = Package(9, Program(functions), {}, default_function="large")
    assert load.model_of(several, "small").graph.name == "small"
    with pytest.raises(UsageError, match="no function 'smal'") as caught:
        load.model_of(several, "smal")
    assert caught.value.code == "E123"
    assert "small" in caught.value.fix


def test_a_classifier_returns_the_label_and_the_probabilities() -> None:
    texts = Constant(TensorType(Element.STRING, (3,)), np.array(["cat", "dog", "cow"]))
    kinds = {
        "label": TensorType(Element.STRING, ()),
        "probs": DictionaryType(TensorType(Element.STRING, ()), F32),
    }
    model = read(
        {"x": vector(1, 3)},
        [operation("classify", kinds, probabilities="%x", classes=texts)],
        list(kinds),
    )
    label, numbers = run(model, [np.array([[0.1, 0.7, 0.2]], F)])
    assert str(np.asarray(label)) == "dog"
    assert np.asarray(numbers).shape == (1, 3)


def test_an_output_that_is_an_input_or_a_constant() -> None:
    steps = [operation("const", {"k": vector(2)})]
    steps[0].attributes = {"val": constant(np.array([1, 2], F))}
    model = read({"x": vector(2)}, steps, ["x", "k"])
    assert [value.name for value in model.graph.outputs] == ["x_out", "k"]
    results = run(model, [np.array([3, 4], F)])
    assert np.array_equal(results, [[3, 4], [1, 2]])


def test_a_later_operation_hides_a_name() -> None:
    """coremltools writes such programs if its pass that renames values is left out."""
    steps = [
        operation("relu", {"x": vector(2)}, x="%x"),
        operation("add", {"x": vector(2)}, x="%x", y=1.0),
    ]
    model = read({"x": vector(2)}, steps, ["x"])
    assert np.array_equal(run(model, [np.array([-3, 4], F)])[0], [1, 5])


# -- refusals ------------------------------------------------------------------------------------


def test_all_refusals_are_reported_together() -> None:
    steps = [
        operation("random_normal", {"r": vector(2)}, shape=np.array([2], I)),
        operation("gelu", {"g": vector(2)}, x="%x", mode="OTHER"),
        operation("frobnicate", {"y": vector(2)}, x="%g"),
    ]
    with pytest.raises(ErrorList) as caught:
        read({"x": vector(2)}, steps, ["y"])
    assert [error.code for error in caught.value.errors] == ["E120", "E121", "E120"]
    assert "frobnicate" in str(caught.value)


REFUSED = {
    "negative index since iOS 17": ("gather", {"indices": [-1]}, vector(1, 3)),
    "computed axis": ("softmax", {"axis": "%x"}, vector(2, 3)),
    "unknown pad_type": (
        "max_pool",
        {"kernel_sizes": [1], "pad_type": "odd"},
        vector(2, 3, 1),
    ),
    "axis out of range": ("reduce_argmax", {"axis": 5.5}, vector(2, element=Element.INT32)),
    "even size": ("local_response_norm", {"size": 2}, vector(2, 3)),
    "unknown element type": ("cast", {"dtype": "fp8"}, vector(2, 3)),
    "wrong sizes": ("split", {"axis": 0, "split_sizes": [1, 1]}, vector(1, 3)),
}


@pytest.mark.parametrize("name", sorted(REFUSED.keys() - {"axis out of range"}))
def test_a_use_that_is_not_read(name: str) -> None:
    kind, arguments, result = REFUSED[name]
    x = np.zeros((2, 3), F)
    with pytest.raises(ErrorList) as caught:
        read_one(kind, {"x": x}, [result], 17, x="%x", **arguments)
    assert {error.code for error in caught.value.errors} == {"E121"}
    assert caught.value.errors[0].why
    assert caught.value.errors[0].fix


CONTRADICTIONS = {
    "E305": ([operation("relu", {"y": vector(2)}, x="%nothing")], ["y"]),
    "E309": ([operation("relu", {"y": vector(2, element=Element.INT32)}, x="%x")], ["y"]),
    "E317": ([operation("relu", {"y": vector(3)}, x="%x")], ["y"]),
    "E308": ([operation("relu", {"y": vector(2), "z": vector(2)}, x="%x")], ["y"]),
    "E304": ([operation("relu", {"y": vector(2)}, x="%x")], ["y", "y"]),
}


@pytest.mark.parametrize("code", CONTRADICTIONS)
def test_a_program_that_contradicts_itself(code: str) -> None:
    steps, outputs = CONTRADICTIONS[code]
    with pytest.raises(InvalidModel) as caught:
        read({"x": vector(2)}, steps, outputs)
    assert caught.value.code == code


def test_rows_that_only_run_have_types() -> None:
    """Every value of a read program has an element type and a shape."""
    model = read({"x": vector(2)}, [loop(until=2)], ["y"])
    for value in scope.values(model):
        assert value.dtype is not None
        assert value.shape is not None
