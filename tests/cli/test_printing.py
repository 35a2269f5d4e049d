"""``--print-changed`` and ``--print-after``: what each pass did, as text."""

import pytest
from small_models import HEADER

SWISH = HEADER + (
    "g (float[B,4] x) => (float[B,4] y) "
    "{ a = Identity(x)  s = Sigmoid(a)  h = Mul(a, s)  t = Sigmoid(h)  y = Mul(h, t) }"
)


@pytest.fixture
def optimize(smelt, write, tmp_path):
    def call(*options, text=SWISH):
        return smelt("optimize", write(text), "-o", tmp_path / "out.onnx", *options)

    return call


def headers(result):
    return [line for line in result.stderr.splitlines() if line.startswith("*** ")]


def test_every_pass_that_changed_something_shows_a_diff_with_types(optimize):
    result = optimize("--print-changed", "--pipeline", "simplify,cleanup")
    assert result.exit_code == 0, result.stderr
    assert headers(result) == ["*** after noop-elimination (1 rewrite) ***"]
    lines = result.stderr.splitlines()
    assert lines[1] == "@@ -4,9 +4,8 @@"
    assert "-  a = Identity(x)  # float[B,4]" in lines
    assert "-  s = Sigmoid(a)  # float[B,4]" in lines
    assert "+  s = Sigmoid(x)  # float[B,4]" in lines
    assert result.stdout == ""


def test_a_pass_by_name_is_the_only_one_that_is_shown(optimize):
    result = optimize("--print-changed=dead-code-elimination,noop_elimination")
    assert headers(result) == [
        "*** after noop-elimination (1 rewrite) ***",
        "*** changed nothing: dead-code-elimination ***",
    ]


def test_a_stage_stands_for_its_passes(optimize):
    result = optimize("--print-changed=simplify", "--pipeline", "simplify")
    first, last = headers(result)
    assert first == "*** after noop-elimination (1 rewrite) ***"
    assert last.startswith("*** changed nothing: cast-optimization, ")
    assert last.endswith(" others ***")


def test_a_pass_that_runs_twice_is_shown_twice(optimize):
    pipeline = "topological-reorder,noop-elimination,topological-reorder"
    result = optimize("--print-after=topological-reorder", "--pipeline", pipeline)
    assert len(headers(result)) == 2
    assert headers(result)[1].startswith("*** after topological-reorder (")
    assert result.stderr.count("opset_import") == 2


def test_a_raised_opset_is_shown_as_the_pass_that_it_is(optimize):
    raised = optimize("--print-changed=raise-opset", "--opset", "21")
    assert '-<ir_version: 10, opset_import: ["" : 20]>' in raised.stderr
    assert '+<ir_version: 10, opset_import: ["" : 21]>' in raised.stderr


@pytest.mark.parametrize("option", ["--print-changed", "--print-after"])
def test_a_name_that_no_pass_has_is_refused_before_anything_is_read(smelt, tmp_path, option):
    result = smelt(
        "optimize", tmp_path / "none.onnx", "-o", tmp_path / "o.onnx", f"{option}=fuse-swich"
    )
    assert result.exit_code == 2
    assert result.stderr.startswith("E601 there is no pass 'fuse-swich'")
    assert "did you mean 'fuse-swish'" in result.stderr


def test_a_pass_that_is_not_in_the_pipeline_is_told(optimize):
    result = optimize("--print-changed=add-fp16-cast")
    assert headers(result) == ["*** not in the pipeline: add-fp16-cast ***"]


@pytest.mark.parametrize(("limit", "shown"), [(3, 3), (1, 1), (0, 12), (12, 12), (11, 11)])
def test_the_limit_says_how_much_is_left_out(optimize, limit, shown):
    result = optimize(
        *("--print-after=topological-reorder", "--pipeline", "topological-reorder"),
        *("--print-limit", limit),
    )
    printed = result.stderr.partition("*** ")[2].partition("/out.onnx: ")[0]
    lines = printed.splitlines()[1:-1]
    if shown == 12:
        assert len(lines) == 12
        assert lines[-1] == "}"
    else:
        assert len(lines) == shown + 1
        assert lines[-1] == f"... {12 - shown} more lines (--print-limit 0 shows all)"


def test_compile_and_convert_show_their_passes(smelt, write, tmp_path):
    compiled = smelt(
        *("compile", write(SWISH), "--target", "c", "--dim", "B=1", "-o", tmp_path / "out"),
        "--print-changed=noop-elimination",
    )
    assert compiled.exit_code == 0, compiled.stderr
    assert "-  a = Identity(x)  # float[1,4]" in compiled.stderr
    converted = smelt(
        *("convert", "jax.nn:gelu", "--input", "f32[B,4]", "-o", tmp_path / "o.onnx"),
        "--print-changed",
    )
    assert converted.exit_code == 0, converted.stderr
    assert headers(converted)


def test_json_stays_alone_on_standard_output(optimize, document):
    result = optimize("--print-changed", "--json")
    assert document(result)["schema"] == "smelt.optimize/2"
    assert headers(result)


def test_the_value_follows_an_equals_sign(optimize):
    result = optimize("--print-changed", "noop-elimination")
    assert result.exit_code == 2
    assert "noop-elimination" in result.stderr
