"""The table of ``make demo``: times as ratios, and rows that a second call reads instead of making."""

import json
from dataclasses import asdict

import pytest

from examples import demo

ROW = demo.Row(
    "mlp (flax)",
    (8, 5),
    0.12,
    "equal bits",
    agrees=True,
    times={"": 0.9, "c": 0.274},
    noise=("",),
)


def test_a_time_within_the_noise_is_no_ratio():
    assert demo.shown(ROW) == ("mlp (flax)", "8 -> 5", "same", "", "0.27", "0.1", "equal bits")


def test_a_wrong_result_is_named():
    wrong = demo.Row(**{**asdict(ROW), "agrees": False, "error": "largest error 3"})
    assert demo.shown(wrong)[-1] == "DIFFERS: largest error 3"


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The names of the models that are processed; none is, as each job gives ``ROW``."""
    names = []

    def job(name):
        names.append(name)
        return ROW

    for each in ("from_jax", "from_onnx", "to_c"):
        monkeypatch.setattr(demo, each, job)
    monkeypatch.setattr(demo, "REPORT", tmp_path / "report.json")
    return names


def test_a_second_call_reads_the_rows_of_the_first(made):
    assert len(list(demo.rows())) == len(made) == 9
    made.clear()
    assert [row.model for row in demo.rows()] == ["mlp (flax)"] * 9
    assert made == []


def test_rows_of_other_software_are_made_again(made):
    list(demo.rows())
    report = json.loads(demo.REPORT.read_text())
    demo.REPORT.write_text(json.dumps({**report, "software": "another"}))
    made.clear()
    list(demo.rows())
    assert len(made) == 9


def test_a_stopped_run_goes_on_where_it_was(made):
    several = demo.rows()
    next(several)
    next(several)
    several.close()
    made.clear()
    list(demo.rows())
    assert len(made) == 7
