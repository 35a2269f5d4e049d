"""Which models a batch has, and where each result goes."""

import pytest

from smelt.batch import plan
from smelt.errors import UsageError


def outputs(folder, *patterns, action="optimize", **options):
    jobs = plan([str(folder / pattern) for pattern in patterns], action, folder / "out", **options)
    return {job.name: job.output for job in jobs.jobs}


def test_results_mirror_the_tree_below_the_part_that_does_not_vary(tmp_path, write):
    write("a.onnx"), write("deep/er/b.onnx")
    both = {"a.onnx": "a.onnx", "deep/er/b.onnx": "deep/er/b.onnx"}
    assert outputs(tmp_path, "m/**/*.onnx") == both
    assert outputs(tmp_path, "m") == both
    assert outputs(tmp_path, "m/a.onnx", "m/deep/er/b.onnx") == both
    # Also where one model matches only: the place of a result does not change with its siblings.
    assert outputs(tmp_path, "m/**/b.onnx") == {"deep/er/b.onnx": "deep/er/b.onnx"}
    assert outputs(tmp_path, "m/d*/er/*.onnx") == {"deep/er/b.onnx": "deep/er/b.onnx"}
    assert outputs(tmp_path, "m/a.onnx", action="compile") == {"a.onnx": "a"}


def test_a_model_that_matches_twice_is_one(tmp_path, write):
    write("a.onnx")
    assert len(outputs(tmp_path, "m/*.onnx", "m/a.onnx", "m/../m/a*")) == 1


def test_names_are_no_patterns_where_they_exist(tmp_path, write):
    write("a[1].onnx"), write("a1.onnx")
    assert list(outputs(tmp_path, "m/a[1].onnx")) == ["a[1].onnx"]
    write("[x]/-o.onnx")
    assert list(outputs(tmp_path, "m/[x]")) == ["-o.onnx"]


def test_earlier_results_are_no_models(tmp_path, write):
    write("a.onnx")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.onnx").write_bytes(b"")
    assert list(outputs(tmp_path, "**/*.onnx")) == ["m/a.onnx"]
    with pytest.raises(UsageError, match="folder of the results") as refused:
        outputs(tmp_path, "out/*.onnx")
    assert refused.value.code == "E690"


@pytest.mark.parametrize("pattern", ["nothing/*.onnx", "nothing.onnx", ""])
def test_a_pattern_that_matches_nothing_is_refused(tmp_path, write, pattern):
    write("a.onnx")
    with pytest.raises(UsageError) as refused:
        plan(["m", pattern] if not pattern else [str(tmp_path / pattern)], "optimize", tmp_path)
    assert refused.value.code == "E690"


@pytest.mark.parametrize("other", ["a.pb", "A.onnx"])
def test_two_models_of_one_result_are_refused(tmp_path, write, other):
    write("a.onnx"), write(other)
    with pytest.raises(UsageError) as refused:
        outputs(tmp_path, "m/*", action="compile")
    assert refused.value.code == "E691"
    assert len(refused.value.at) == 2


@pytest.mark.parametrize(
    "option", ["-o", "-ofile", "--output", "--output=x", "--json", "--report=r.html"]
)
def test_options_that_the_batch_gives_are_refused(tmp_path, write, option):
    write("a.onnx")
    with pytest.raises(UsageError) as refused:
        outputs(tmp_path, "m", options=[option])
    assert refused.value.code == "E692"


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_is_a_time(tmp_path, write, timeout):
    write("a.onnx")
    with pytest.raises(UsageError):
        outputs(tmp_path, "m", timeout=timeout)
