"""``--dry-run``: what would run, in the language of pipelines, and nothing else happens."""

import pytest

from smelt.passes.pipeline import parse
from smelt.passes.pipelines import STAGES


@pytest.fixture
def dry(smelt, tmp_path, monkeypatch):
    """What a command with ``--dry-run`` prints, for a model that there is not."""
    monkeypatch.chdir(tmp_path)

    def call(command, *options):
        source = "no.such:function" if command == "convert" else "none.onnx"
        result = smelt(command, source, "-o", "out.onnx", "--dry-run", *options)
        assert list(tmp_path.iterdir()) == []
        return result

    return call


def passes_run(smelt, document, *arguments):
    """Every pass that a command ran, with its options, and how often."""
    facts = document(smelt(*arguments, "--timing", "--json"))
    [whole] = [phase for phase in facts["timing"]["phases"] if phase["name"] == "optimize"]
    return {part["name"]: part["runs"] for part in whole["parts"] if part["category"] == "pass"}


@pytest.mark.parametrize("command", ["optimize", "compile", "convert"])
@pytest.mark.parametrize("pipeline", [*STAGES, "simplify,fixpoint(fuse,cleanup){max=3}"])
def test_the_text_is_that_of_the_same_steps(dry, command, pipeline):
    result = dry(command, "--pipeline", pipeline)
    assert result.exit_code == 0, result.stderr
    assert parse(result.stdout) == parse(pipeline)
    lines = [line.strip().strip("(),").partition("{")[0] for line in result.stdout.splitlines()]
    assert not STAGES.keys() & set(lines)
    assert result.stderr.endswith("nothing was read or written\n")


@pytest.mark.parametrize(
    "options", [(), ("--fast-math",), ("--pipeline", "simplify,cleanup", "--assume-finite")]
)
def test_optimize_runs_the_same_passes_by_the_text(smelt, dry, write, tmp_path, document, options):
    text = dry("optimize", *options).stdout
    model, out = write(), tmp_path / "o.onnx"
    (tmp_path / "p.txt").write_text(text)
    asked = passes_run(smelt, document, "optimize", model, "-o", out, *options)
    again = passes_run(smelt, document, "optimize", model, "-o", out, "--pipeline", text)
    from_file = passes_run(
        smelt, document, "optimize", model, "-o", out, "--pipeline", f"@{tmp_path}/p.txt"
    )
    assert asked == again == from_file
    assert len(asked) > 3


def test_sizes_are_bound_by_a_step_of_the_text(smelt, dry, write, tmp_path, document):
    text = dry("optimize", "--dim", "B=2").stdout
    assert text.startswith("materialize-symbolic-dims{dims=B=2},\n")
    model, out = write(), tmp_path / "o.onnx"
    again = document(smelt("optimize", model, "-o", out, "--pipeline", text, "--json"))
    asked = document(smelt("optimize", model, "-o", out, "--dim", "B=2", "--json"))
    assert [each["pass"] for each in again["passes"]] == [each["pass"] for each in asked["passes"]]


def test_compile_runs_the_same_passes_by_the_text(smelt, dry, write, tmp_path, document):
    text = dry("compile", "--target", "c").stdout
    command = ("compile", write(), "--target", "c", "--dim", "B=1", "-o", tmp_path / "out")
    asked = passes_run(smelt, document, *command)
    assert asked == passes_run(smelt, document, *command, "--pipeline", text)
    assert "expand-attention" in asked


def test_a_target_says_what_it_adds(dry, document):
    result = dry("compile", "--target", "c")
    assert "expand-attention" not in result.stdout
    assert "target c adds passes of its own" in result.stderr
    assert "  expand-attention," in result.stderr.splitlines()
    assert "  select: by the rules select_conv_relu" in result.stderr.splitlines()
    assert "detect-concat-interleave (makes smelt.ConcatInterleave)" in result.stderr
    facts = document(dry("compile", "--target", "c", "--json"))
    assert facts["schema"] == "smelt.dry-run/1"
    assert list(facts["phases"]) == ["select", "check limits", "schedule", "allocate", "emit"]
    assert parse(facts["pipeline"]) == parse("default")
    assert "expand-attention" in facts["target_pipeline"]
    assert facts["idle"] == ["detect-concat-interleave"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--pipeline", "fuse-swich"), "E601"),
        (("--pipeline", "fixpoint("), "E602"),
        (("--target", "see"), "E611"),
        (("--target", "c", "--option", "nam=x"), "E660"),
    ],
)
def test_a_dry_run_refuses_wrong_options(dry, options, code):
    result = dry("compile", *options)
    assert (result.exit_code, result.stdout, result.stderr[:4]) == (2, "", code)
