"""``smelt convert``: what is said about the arguments of a function."""

import logging

import numpy as np
import onnx
import pytest

from smelt.cli.tracing import parse_inputs, parse_names, parse_static
from smelt.errors import UsageError
from smelt.frontends.jax.patching import patches

MODULE = """
import functools
import jax
import jax.numpy as jnp

def dense(p, x):
    return x @ p["kernel"]

abstract = functools.partial(dense, {"kernel": jax.ShapeDtypeStruct((4, 2), jnp.float32)})

weight = jnp.arange(6.0).reshape(3, 2)

def model(x, *, scale, mode="plain", axes=None, train=True):
    assert mode == "mean" and axes == (1, 2) and train is False
    return {"image": x * scale, "mean": x.mean(axes) @ weight}

def third(x):
    return jnp.tanh(x)

def brighter(x):
    return x * 1.5

def first(x):
    return x[:4] if x.shape[0] > 3 else x
"""


@pytest.fixture
def convert(smelt, tmp_path, monkeypatch):
    """``convert(function, *arguments)``: the result of the command, and the model it wrote."""
    (tmp_path / "to_convert.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "out.onnx"

    def call(function, *arguments):
        result = smelt("convert", f"to_convert:{function}", "-o", path, *arguments)
        return result, onnx.load(path) if path.exists() else None

    return call


def interface(model):
    def show(value):
        return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]

    return {value.name: show(value) for value in (*model.graph.input, *model.graph.output)}


INPUTS = ("--input", "f32[B,4,5,3]", "--input", "scale=f32[]")
STATIC = ("--static", "mode=mean", "--static", "axes=(1, 2)", "--static", "train=false")


def test_a_model_is_compared_with_the_function_before_it_is_written(convert, smelt, tmp_path):
    result, _ = convert("model", *INPUTS, *STATIC, "--verify", "final")
    assert result.exit_code == 0, result.stderr
    assert "verified at B=1,3: largest error" in result.stderr or "equal bits" in result.stderr
    side = ("to_convert:model", tmp_path / "out.onnx")
    assert smelt("verify", *side, *INPUTS, *STATIC).exit_code == 0
    assert smelt("verify", *side, *INPUTS, *STATIC[:2]).exit_code == 2  # axes are missing
    both = (tmp_path / "out.onnx",) * 2
    result = smelt("verify", *both, *STATIC)
    assert result.exit_code == 2
    assert "smelt verify pkg.mod:fn model.onnx" in result.stderr


def test_a_function_in_64_bits_is_called_in_64_bits(convert, smelt, tmp_path):
    result, _ = convert("third", "--input", "f64[B,4]", "--x64", "--verify", "final")
    assert result.exit_code == 0, result.stderr
    side = ("to_convert:third", tmp_path / "out.onnx")
    assert smelt("verify", *side, "--x64", "--input", "f64[B,4]").exit_code == 0
    assert smelt("verify", *side).exit_code == 1  # in 32 bits it is another function


@pytest.mark.parametrize(
    "options", [("--channels-first", "x"), ("--input-name", "image"), ("--opset", "18")]
)
def test_a_model_with_another_interface_is_compared_too(convert, options):
    result, _ = convert("brighter", "--input", "f32[B,4,5,3]", *options, "--verify", "final")
    assert result.exit_code == 0, result.stderr
    assert "verified at B=1,3" in result.stderr


def test_everything_at_once(convert):
    result, model = convert(
        "model",
        *INPUTS,
        *STATIC,
        *("--input-name", "x=image", "--output-name", "out_image=scaled"),
        *("--channels-first", "image", "--channels-first", "scaled", "--input-param", "wei*"),
    )
    assert result.exit_code == 0, result.stderr
    assert interface(model) == {
        "image": ["B", 3, 4, 5],
        "scale": [],
        "weight": [3, 2],
        "scaled": ["B", 3, 4, 5],
        "out_mean": ["B", 2],
    }


def test_names_in_order(convert):
    result, model = convert(
        "model", *INPUTS, *STATIC, "--output-name", "a", "--output-name", "b", "--external-data"
    )
    assert result.exit_code == 0, result.stderr
    assert [value.name for value in model.graph.output] == ["a", "b"]


def test_constraints(convert):
    result, _ = convert("first", "--input", "f32[S]", "--strict")
    assert result.exit_code == 4
    assert "E112" in result.stderr
    given = ("--constraint", "S % 2 == 0", "--constraint", "S >= 4")
    result, model = convert("first", "--input", "f32[S]", *given)
    assert result.exit_code == 0, result.stderr
    assert list(interface(model)) == ["x", "out"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--input", "f32[2]"), "E109"),
        ((*INPUTS, "--static", "scale=1"), "E109"),
        ((*INPUTS, "--static", "mode"), "E636"),
        ((*INPUTS, *STATIC, "--output-name", "a"), "E108"),
        ((*INPUTS, *STATIC, "--output-name", "a", "--output-name", "out_mean=b"), "E636"),
        ((*INPUTS, *STATIC, "--input-param", "bias"), "E110"),
        ((*INPUTS, *STATIC, "--channels-first", "y"), "E108"),
    ],
)
def test_wrong_arguments_are_refused_by_code(convert, arguments, code):
    result, model = convert("model", *arguments)
    assert result.exit_code == 2, result.stderr
    assert result.stderr.startswith(code)
    assert model is None


def test_weights_beside_need_a_file(smelt):
    result = smelt("convert", "m:f", "-o", "-", "--external-data")
    assert result.exit_code == 2
    assert "E637" in result.stderr


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-1e-5", -1e-5),
        ("True", True),
        ("false", False),
        ("none", None),
        ("'3'", "3"),
        ("(1, 2)", (1, 2)),
        ("gelu", "gelu"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_static_values(text, value):
    parsed = parse_static([f"k={text}"])["k"]
    assert parsed == value
    assert type(parsed) is type(value)


def test_inputs_by_position_and_keyword():
    specs = ["f32[B]", "mask = bool[B]", "i8[max(B, 4)]"]
    assert parse_inputs(specs) == (["f32[B]", "i8[max(B, 4)]"], {"mask": " bool[B]"})


@pytest.mark.parametrize(
    "parse",
    [
        lambda: parse_inputs(["a=f32[]", "a=f32[]"]),
        lambda: parse_static(["a=1", "a=2"]),
        lambda: parse_static(["=1"]),
        lambda: parse_names(["a=b", "a=c"], "--input-name"),
    ],
)
def test_contradictions_are_refused(parse):
    with pytest.raises(UsageError) as caught:
        parse()
    assert caught.value.code == "E636"


@pytest.mark.parametrize("place", [0, 2])
def test_verbose_reports_skipped_patches(smelt, convert, monkeypatch, place, tmp_path):
    gone = patches.Patch("jax.nn:attention_of_old", lambda original: original)
    monkeypatch.setattr(patches, "_skipped", set())
    arguments = ["convert", "to_convert:first", "--input", "f32[4]", "-o", tmp_path / "out.onnx"]
    with patches.PATCHES.refilled():
        patches.register(gone)
        assert "attention_of_old" not in smelt(*arguments).stderr
        monkeypatch.setattr(patches, "_skipped", set())
        result = smelt(*arguments[:place], "--verbose", *arguments[place:])
    log = logging.getLogger("smelt")
    log.handlers = []
    log.setLevel(logging.NOTSET)
    assert result.exit_code == 0
    assert (
        "traced without its patch, which may take longer: jax.nn:attention_of_old" in result.stderr
    )


def test_weights_come_from_a_checkpoint(convert, tmp_path):
    kernel = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.savez(tmp_path / "w.npz", **{"params/kernel": kernel})
    result, model = convert("abstract", "--input", "f32[B,4]", "--weights", tmp_path / "w.npz")
    assert result.exit_code == 0, result.output
    (weight,) = model.graph.initializer
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(weight), kernel)

    np.savez(tmp_path / "w.npz", gamma=kernel)
    wrong, _ = convert("abstract", "--input", "f32[B,4]", "--weights", tmp_path / "w.npz")
    assert wrong.exit_code != 0
    assert "E340" in wrong.output
    options = ("--weight-name", "p_kernel=gamma", "--cast-weights", "--extra-weights")
    np.savez(tmp_path / "w.npz", gamma=kernel.astype(np.float64), step=np.zeros(1))
    given = ("abstract", "--input", "f32[B,4]", *options)
    result, model = convert(*given, "--weights", tmp_path / "w.npz")
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(model.graph.initializer[0]), kernel)

    without, _ = convert(*given)
    assert "E637" in without.output
