"""Commands of one kind have the same options, and an option means the same in each of them.

``SHARED`` says which commands have which options. A new command of a kind goes into the tuple of
that kind; this test then names the options that it lacks.
"""

import numpy as np
import onnx
import pytest
import typer
from small_models import HEADER

from smelt.cli.main import COMMANDS, app, options
from smelt.cli.settings.options import all_options

CALLS_FUNCTIONS = ("convert", "compile", "verify", "run", "bench")
RUNS_PASSES = ("convert", "optimize", "compile", "bisect")
WRITES_WHAT_PASSES_MADE = ("convert", "optimize", "compile")
SETS_SIZES = (*CALLS_FUNCTIONS, "optimize", "bisect", "inspect", "merge", "quantize")
TIMES_PHASES = (*WRITES_WHAT_PASSES_MADE, "verify")

SHARED = {
    **dict.fromkeys(("--static", "--x64"), CALLS_FUNCTIONS),
    "--input": (*CALLS_FUNCTIONS, "generate"),
    **dict.fromkeys(
        ("--pipeline", "--opset", "--keep-opset", "--keep-bf16", "--functions"), RUNS_PASSES
    ),
    **dict.fromkeys(("--fast-math", "--assume-finite"), RUNS_PASSES),
    "--dim": SETS_SIZES,
    "--inputs": ("convert", "optimize", "compile", "verify", "run", "bench", "extract", "generate"),
    "--verify": (*WRITES_WHAT_PASSES_MADE, "merge"),
    **dict.fromkeys(
        ("--dry-run", "--print-changed", "--print-after", "--print-limit"),
        WRITES_WHAT_PASSES_MADE,
    ),
    **dict.fromkeys(("--timing", "--trace"), TIMES_PHASES),
    "--report": (*TIMES_PHASES, "bisect", "batch", "diff"),
    "--seed": ("verify", "run", "bisect", "quantize", "generate"),
    "--target": ("convert", "compile", "run", "bench", "tune"),
    "--threads": ("compile", "bench", "tune", "generate"),
    "--json": tuple(COMMANDS),
}

DIFFERENT = {
    "--input": "run and bench also take arrays; convert, compile and verify take types alone",
    "--inputs": "run and bench read one set of arrays, the others samples; extract takes names",
    "--dim": "compile takes bounds, verify several sizes, run one size",
    "--target": "run and bench run models as they are by default; bench repeats it",
    "--threads": "what runs on them differs",
    "--output": "a file, a folder, or a table",
    "--keep": "half types also choose by themselves, and take lists",
    "--weights": "convert reads a checkpoint, quantize chooses a type",
    "--seed": "generate draws tokens, the others inputs",
    "--strict": "convert has no fallback to forbid",
    "--within": "compile limits the error of weights alone, of 4 or 8 bits",
    "--option": "quantize takes the CPU alone whose cycles it counts",
    "--seconds": "bench fills them, tune stops after them",
    "--runs": "rounds of bench, runs of a check of reduce",
    "--timeout": "of a model of batch, of a run of a check of reduce",
}
"""The options that say something else in different commands, and why they have to."""


def commands():
    """Return the click command of each name."""
    group = typer.main.get_command(app)
    return {name: group.commands[name] for name in COMMANDS}


@pytest.mark.parametrize("option", SHARED)
def test_every_command_of_a_kind_has_the_options_of_that_kind(option):
    have = {
        name
        for name, command in commands().items()
        if any(option in param.opts for param in command.params)
    }
    assert have == set(SHARED[option])


def test_an_option_has_one_description():
    told = {}
    for command in commands().values():
        for param in command.params:
            for spelling in param.opts:
                if spelling.startswith("--"):
                    told.setdefault(spelling, set()).add((param.help, param.metavar))
    several = {spelling for spelling, texts in told.items() if len(texts) > 1}
    assert several == set(DIFFERENT)


def test_settings_files_set_the_options_of_groups():
    keys = {option.key for option in all_options(COMMANDS, options)}
    assert {"compile.fast-math", "bisect.pipeline", "run.static", "optimize.keep-opset"} <= keys


def test_each_variable_ends_with_the_name_of_its_option():
    for option in all_options(COMMANDS, options):
        own = option.name.upper().replace("-", "_")
        assert all(variable.endswith(f"_{own}") for variable in option.variables)


TANH = HEADER + ("g (float[B,4] x) => (float[B,4] y) <float c = {3}> { d = Div(x, c) y = Tanh(d) }")


def test_compile_and_bisect_run_the_stages_that_flags_add(smelt, write, tmp_path):
    source, folder = write(TANH), tmp_path / "out"
    for flags, operator in ((), "Div"), (("--fast-math",), "Mul"):
        result = smelt("compile", source, "-o", folder, *flags, "--verify", "each")
        assert result.exit_code == 0, result.stderr
        [model] = folder.glob("*.onnx")
        assert [node.op_type for node in onnx.load(model).graph.node] == [operator, "Tanh"]
    assert smelt("bisect", source, "--fast-math").exit_code == 0


def test_compile_keeps_the_opset_on_request(smelt, write, tmp_path):
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (float[B,4] x) => (float[B,4] y) '
        "<float r = {1.4142135}, float one = {1}, float half = {0.5}> "
        "{ d = Div(x, r) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Mul(m, half) }"
    )
    source, folder = write(text), tmp_path / "out"
    for flags, opset in ((), 20), (("--keep-opset",), 17):
        assert smelt("compile", source, "-o", folder, *flags).exit_code == 0
        [model] = folder.glob("*.onnx")
        assert onnx.load(model).opset_import[0].version == opset


MODULE = """
import jax.numpy as jnp

def scaled(x, *, power=1):
    return x**power + jnp.asarray(1).astype(jnp.int64)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module with the function ``scaled``; return its reference."""
    (tmp_path / "shared_scaled.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return "shared_scaled:scaled"


def test_run_and_bench_pass_static_values_and_64_bit_types(smelt, module, document):
    how = ("--input", "f64[2]", "--input", "zeros", "--static", "power=0", "--x64")
    [output] = document(smelt("run", module, *how, "--json"))["outputs"]
    assert (output["type"], output["min"]) == ("double[2]", 2)
    result = smelt("bench", module, f"{module}@ort", *how, "--runs", "2")
    assert result.exit_code == 0, result.stderr


def test_static_values_of_a_model_are_refused(smelt, write):
    result = smelt("run", write(), "--static", "power=2")
    assert result.exit_code == 2
    assert "E608" in result.stderr


def test_convert_binds_dims_and_compares_on_given_inputs(smelt, module, tmp_path, document):
    np.savez(tmp_path / "d.npz", x=np.ones(3, np.float32))
    out = tmp_path / "o.onnx"
    how = ("--input", "f32[B]", "--dim", "B=3", "--verify", "each", "--inputs", tmp_path / "d.npz")
    result = smelt("convert", module, *how, "-o", out, "--json")
    assert result.exit_code == 0, result.stderr
    [given] = onnx.load(out).graph.input
    assert [dim.dim_value for dim in given.type.tensor_type.shape.dim] == [3]
    assert [trial["inputs"] for trial in document(result)["verification"]["trials"]] == ["given"]
    refused = smelt("convert", module, *how[:4], *how[6:], "-o", out)
    assert "add --verify final" in refused.stderr
