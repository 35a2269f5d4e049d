"""A Predictor: columns in, columns out, whatever batch the model takes. No cluster is needed."""

import dataclasses
import pickle
from pathlib import Path

import numpy as np
import onnx
import pytest

import smelt
from smelt.errors import SmeltError, Unsupported, UsageError
from smelt.ray import Predictor

HEADER = '<ir_version: 10, opset_import: ["": 20]> '
AFFINE = HEADER + "g (float[B,3] x) => (float[B,3] y) <float two = {2}> { y = Mul(x, two) }"
FIXED = AFFINE.replace("B", "4")
ROWS = np.arange(30, dtype=np.float32).reshape(10, 3)


@pytest.fixture
def write(tmp_path):
    def write_model(text=AFFINE):
        path = tmp_path / "m.onnx"
        path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
        return path

    return write_model


@pytest.mark.parametrize("text", [AFFINE, FIXED])
@pytest.mark.parametrize("rows", [10, 8, 4, 1, 0])
def test_every_row_has_its_result(write, text, rows):
    result = Predictor(write(text))({"x": ROWS[:rows]})
    assert list(result) == ["y"]
    assert result["y"].dtype == np.float32
    np.testing.assert_array_equal(result["y"], 2 * ROWS[:rows])


@pytest.mark.parametrize("target", ["onnx", "host", "c"])
@pytest.mark.parametrize("dims", [{"B": 4}, {"B": 1}])
def test_compiled_on_the_worker(write, target, dims):
    predict = pickle.loads(pickle.dumps(Predictor(write(), target=target, dims=dims)))
    np.testing.assert_array_equal(predict({"x": ROWS})["y"], 2 * ROWS)


def test_host_takes_any_number_of_rows(write):
    np.testing.assert_array_equal(Predictor(write(), target="host")({"x": ROWS})["y"], 2 * ROWS)


def test_models_in_memory_and_artifacts_are_sent_along(write):
    model = smelt.load(write(FIXED))
    sources = [model, write().read_bytes()]
    sources += [smelt.compile(model, target=target) for target in ("onnx", "c", "host")]
    for source in sources:
        predict = Predictor(source)
        predict({"x": ROWS})  # What is loaded stays behind.
        again = pickle.loads(pickle.dumps(predict))
        np.testing.assert_array_equal(again({"x": ROWS})["y"], 2 * ROWS)
    content = write().read_bytes()
    assert content in pickle.dumps(Predictor(content)), "bytes of a file are sent as they stand"
    with pytest.raises(UsageError, match="holds nothing that can be run"):
        Predictor(dataclasses.replace(smelt.compile(model), files={"notes.txt": b"no model"}))


def test_columns_are_mapped_kept_and_chosen(write):
    text = HEADER + "g (float[B,3] x) => (float[B,3] y, float[B,3] z) { y = Neg(x) z = Abs(x) }"
    batch = {"data": ROWS, "id": np.arange(10), "other": np.arange(10)}
    predict = Predictor(write(text), columns={"x": "data"}, outputs=["z"], keep=["id"])
    assert list(predict(batch)) == ["id", "z"]


def test_rows_that_are_padded_do_not_come_back_nor_bring_nan(write):
    """The last row is repeated: zeros, as padding, would make NaN here."""
    text = FIXED.replace("Mul(x, two)", "Div(two, x)")
    with np.errstate(all="raise"):
        result = Predictor(write(text), target="host")({"x": ROWS[1:6]})
    np.testing.assert_array_equal(result["y"], 2 / ROWS[1:6])


def test_inputs_with_a_default_may_be_left_out(write):
    text = HEADER + "g (float[B,3] x, float s = {3}) => (float[B,3] y) { y = Mul(x, s) }"
    np.testing.assert_array_equal(Predictor(write(text))({"x": ROWS})["y"], 3 * ROWS)


@pytest.mark.parametrize(
    ("batch", "told"),
    [
        ({"X": ROWS}, "there is no column 'x'"),
        ({}, "there is no column 'x'"),
        ({"x": ROWS.astype(np.float64)}, "float64"),
        ({"x": ROWS[:, :2]}, "[10,2]"),
        ({"x": np.array([[1.0], None], object)}, "object"),
        (ROWS, "a dict of arrays"),
    ],
)
def test_batches_that_do_not_fit_are_refused(write, batch, told):
    with pytest.raises(UsageError) as refused:
        Predictor(write())(batch)
    assert told in str(refused.value)
    assert refused.value.code in ("E697", "E632")


def test_a_rest_is_refused_where_it_may_not_be_padded(write):
    predict = Predictor(write(FIXED), pad=False)
    assert len(predict({"x": ROWS[:8]})["y"]) == 8
    with pytest.raises(UsageError, match="not a multiple of 4"):
        predict({"x": ROWS})


@pytest.mark.parametrize(
    "options", [{"outputs": ["yy"]}, {"columns": {"xx": "x"}}, {"keep": ["i"]}]
)
def test_strangers_are_refused(write, options):
    with pytest.raises(UsageError) as refused:
        Predictor(write(), **options)({"x": ROWS})
    assert refused.value.code == "E697"


@pytest.mark.parametrize(
    "graph",
    [
        "(float[B,3] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }",
        "(float[B,3] x) => (float[3] y) { a = Constant<value_ints = [0]>() y = ReduceSum<keepdims = 0>(x, a) }",
        "(float[B,3] x, float[3] w) => (float[B,3] y) { y = Mul(x, w) }",
        "(float[B,3] x, float s) => (float[B,3] y) { y = Mul(x, s) }",
    ],
)
def test_models_without_rows_are_refused(write, graph):
    batch = {"x": ROWS, "w": ROWS, "s": ROWS[:, 0]}
    with pytest.raises(Unsupported) as refused:
        Predictor(write(HEADER + "g " + graph))(batch)
    assert refused.value.code == "E696"


def test_columns_of_different_lengths_are_refused(write):
    text = HEADER + "g (float[B,3] x, float[B,3] w) => (float[B,3] y) { y = Mul(x, w) }"
    with pytest.raises(UsageError, match="x: 10, w: 9"):
        Predictor(write(text))({"x": ROWS, "w": ROWS[:9]})


def test_errors_travel_between_processes():
    for error in (
        UsageError("E697", "what", at="here", why="so", fix="do"),
        Unsupported("E2", "w"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.status == error.status


def test_a_model_that_is_missing_is_told_by_the_worker(tmp_path):
    with pytest.raises(SmeltError, match="none"):
        Predictor(tmp_path / "none.onnx")({"x": ROWS})


GPT2 = Path(__file__).parents[1] / "merging" / "models" / "gpt2_decoder_with_past.onnx"


@pytest.mark.parametrize("source", ["path", "decoder", "model in memory"])
def test_a_decoder_generates_tokens_for_each_row(source):
    prompts = np.empty(3, object)
    prompts[:] = [np.array([3, 1, 4]), np.array([1, 5]), np.array([9, 2, 6])]
    model = smelt.load(GPT2) if source == "model in memory" else GPT2
    decoder = GPT2 if source == "path" else smelt.Decoder(model)
    predict = Predictor(
        decoder, generate={"max_new_tokens": 4}, columns={"ids": "prompt"}, keep=["n"]
    )
    predict = pickle.loads(pickle.dumps(predict))
    result = predict({"prompt": prompts, "n": np.arange(3)})
    assert list(result) == ["n", "tokens"]
    assert [row.tolist() for row in result["tokens"]] == [
        smelt.generate(GPT2, each, 4).tolist() for each in prompts
    ]
    nothing = predict({"prompt": np.empty(0, object), "n": np.arange(0)})
    assert nothing["tokens"].shape == (0,)


@pytest.mark.parametrize(
    ("options", "batch", "code"),
    [
        ({"generate": {}, "target": "host"}, {}, "E697"),
        ({"generate": {}, "columns": {"x": "ids"}}, {"ids": [[1]]}, "E697"),
        ({"generate": {}}, {"prompt": [[1]]}, "E697"),
        ({"generate": {"heat": 2}}, {"ids": [[1]]}, "E802"),
        ({"generate": {}}, {"ids": [[99]]}, "E803"),
    ],
)
def test_wrong_options_and_prompts_of_a_decoder_are_refused(options, batch, code):
    with pytest.raises(UsageError) as refused:
        Predictor(GPT2, **options)(batch)
    assert refused.value.code == code
