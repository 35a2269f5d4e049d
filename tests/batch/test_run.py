"""A batch goes on after whatever one model does, and again where it stopped."""

import json
from functools import partial
from pathlib import Path

import pytest
from sampling import sampled

from smelt.batch import plan, run
from smelt.batch.local import run_jobs
from smelt.batch.record import NAME, opened
from smelt.errors import UsageError


@pytest.fixture
def batch(tmp_path, write, calls):
    """Plan a batch over models of these names."""

    def planned(*names, options=(), timeout=None):
        for name in names:
            write(name)
        return plan(
            [tmp_path / "m"], "optimize", tmp_path / "out", options=options, timeout=timeout
        )

    return planned


def codes(summary):
    return {outcome.name: outcome.code for outcome in summary.listed()}


@pytest.mark.parametrize("jobs", sampled([3, 1], 2))
def test_whatever_one_model_does_the_others_are_done(batch, jobs):
    names = ("a.onnx", "bad.onnx", "crash.onnx", "hang.onnx", "killed.onnx", "mute.onnx", "z.onnx")
    summary = run(batch(*names, timeout=1.0), run_jobs=partial(run_jobs, jobs=jobs))
    assert codes(summary) == dict(
        zip(names, ("", "E301", "E520", "E511", "E520", "E901", ""), strict=True)
    )
    assert not summary.ok
    errors = {outcome.name: outcome.error for outcome in summary.listed()}
    assert "SIGABRT" in errors["crash.onnx"]["what"]
    assert "stack smashing" in errors["crash.onnx"]["why"]
    assert "memory" in errors["killed.onnx"]["fix"]
    assert errors["mute.onnx"]["why"] == "its last output: no words"
    assert summary.to_json()["counts"] == {"done": 2, "failed": 5, "missing": 0, "cached": 0}


def test_a_second_run_does_what_is_missing(batch, calls, tmp_path, write):
    planned = batch("a.onnx", "bad.onnx", "b.onnx")
    run(planned)
    assert calls() == ["a.onnx", "b.onnx", "bad.onnx"]
    summary = run(planned)
    assert calls() == []
    assert all(outcome.cached for outcome in summary.listed())
    assert codes(summary)["bad.onnx"] == "E301"
    assert summary.listed()[0].nodes == [3, 2]
    run(planned, retry=True)
    assert calls() == ["bad.onnx"]
    (tmp_path / "out" / "a.onnx").unlink()
    (tmp_path / "out" / "b.onnx").write_text("of somebody else")
    run(planned)
    assert calls() == ["a.onnx", "b.onnx"]
    (tmp_path / "m" / "a.onnx").write_bytes(b"another model")
    run(batch("c.onnx"))
    assert calls() == ["a.onnx", "c.onnx"]


def test_other_options_are_other_results(batch, calls):
    for _ in range(2):  # What stands there now counts, not what once did.
        run(batch("a.onnx"))
        run(batch(options=["--fast-math"]))
    assert calls() == ["a.onnx", "a.onnx", "a.onnx --fast-math", "a.onnx --fast-math"]


def test_options_that_the_command_does_not_have_end_the_batch(batch, calls):
    with pytest.raises(UsageError) as refused:
        run(batch(*(f"{number}.onnx" for number in range(9)), options=["--wrong"]))
    assert refused.value.code == "E643"
    assert len(calls()) < 9


def test_models_done_before_an_interruption_are_not_run_again(batch, calls):
    planned = batch("a.onnx", "b.onnx", "hang.onnx")

    def interrupt(outcome):
        if outcome.name == "b.onnx":
            raise KeyboardInterrupt

    summary = run(planned, tell=interrupt)
    assert summary.stopped
    assert not summary.ok
    assert summary.to_json()["counts"]["missing"] == 1
    calls()
    (planned.folder.parent / "m" / "hang.onnx").unlink()
    assert run(batch("c.onnx")).ok
    assert calls() == ["c.onnx"]


def test_a_line_cut_short_is_no_line(batch, calls):
    planned = batch("a.onnx", "b.onnx")
    run(planned)
    record = planned.folder / NAME
    record.write_bytes(b'[]\nnull\n{"schema": "of another"}\n\xff\n' + record.read_bytes()[:-10])
    calls()
    run(planned)
    assert calls() == ["b.onnx"]
    assert run(planned).ok
    assert calls() == []


def test_the_record_is_json_lines(batch):
    planned = batch("a.onnx")
    run(planned)
    [entry] = map(json.loads, (planned.folder / NAME).read_text().splitlines())
    assert entry["schema"] == "smelt.batch.record/1"
    assert entry["files"] == {"a.onnx": 5}
    assert not any(Path(str(value)).is_absolute() for value in entry.values())


def test_two_batches_do_not_share_a_folder(batch):
    planned = batch("a.onnx")
    with opened(planned.folder, "compile"), pytest.raises(UsageError) as refused:
        run(planned)
    assert refused.value.code == "E693"


def test_a_document_of_another_form_is_a_failure_of_that_model(batch):
    summary = run(batch("a.onnx", "odd-list.onnx", "odd.onnx"))
    assert codes(summary) == {"a.onnx": "", "odd-list.onnx": "E901", "odd.onnx": "E901"}


def test_a_file_in_the_way_of_a_folder_is_a_failure_of_its_models(batch, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sub").write_text("in the way")
    assert codes(run(batch("a.onnx", "sub/b.onnx"))) == {"a.onnx": "", "sub/b.onnx": "E639"}


def test_a_model_that_is_gone_is_told(batch, tmp_path):
    planned = batch("a.onnx", "b.onnx")
    (tmp_path / "m" / "a.onnx").unlink()
    assert codes(run(planned)) == {"a.onnx": "E639", "b.onnx": ""}
