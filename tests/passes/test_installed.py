"""Passes of installed packages: their names, their positions, and the effect of a broken one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from packages import installed

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.passes import pipeline, registry
from smelt.passes.pipeline import Fixpoint, Steps

RIGHT = '''
    """Drop the Neg before a Cos.

    Needs    nothing.
    Keeps    nothing.
    """

    from smelt.ir.pattern import op, var
    from smelt.ir.rule import rule
    from smelt.passes.base import rule_pass

    @rule(op("Cos", op("Neg", var("x"))))
    def whole(m, b):
        return b.op("Cos", m["x"])

    of_neg = rule_pass("of_neg", __doc__, [whole], {options})
'''
GRAPH = "g (float[2] x) => (float[2] y) { a = Neg(x) y = Cos(a) }"


@contextmanager
def package(folder: Path, code: str, key: str = "right-pass") -> Iterator[None]:
    points = f"[smelt.passes]\n{key} = of_neg_package:of_neg\n"
    pipeline._stage.cache_clear()
    try:
        with (
            installed(folder, "of_neg_package", textwrap.dedent(code), points),
            registry.PASSES.refilled(),
        ):
            yield
    finally:
        pipeline._stage.cache_clear()


def names(steps: Steps) -> list[str]:
    return [
        name
        for step in steps
        for name in (names(step.steps) if isinstance(step, Fixpoint) else [step.pass_.spelling])
    ]


@pytest.mark.parametrize(
    ("options", "neighbour"),
    [
        ('after=("fuse_gelu_exact",)', (-1, "fuse-gelu-exact")),
        ('before=("fuse_swish",)', (1, "fuse-swish")),
        ("", None),
    ],
)
def test_a_default_pass_runs_where_it_declares(tmp_path, options, neighbour):
    with package(tmp_path, RIGHT.replace("{options}", options)):
        listed = names(pipeline.parse("default"))
        place = listed.index("right-pass")
        assert neighbour is None or listed[place + neighbour[0]] == neighbour[1]
        assert len(smelt.optimize(text.parse(GRAPH)).graph) == 1
        assert registry.find_pass("right_pass").spelling == "right-pass"
    assert "right-pass" not in names(pipeline.parse("default"))


def test_a_pass_that_is_no_default_runs_by_name_alone(tmp_path):
    with package(tmp_path, RIGHT.replace("{options}", "default=False")):
        assert len(smelt.optimize(text.parse(GRAPH)).graph) == 2
        assert len(smelt.optimize(text.parse(GRAPH), pipeline="default,right-pass").graph) == 1


@pytest.mark.parametrize("code", ["raise RuntimeError('no luck')", "of_neg = 3"])
def test_a_broken_pass_stops_only_those_who_name_it(tmp_path, code, smelt_command):
    with package(tmp_path, code):
        if "raise" in code:
            with pytest.warns(UserWarning, match=r"of_neg_package 1\.0 cannot be loaded"):
                registry.passes()
        assert len(smelt.optimize(text.parse(GRAPH)).graph) == 2
        with pytest.raises(UsageError, match="right-pass") as caught:
            smelt.optimize(text.parse(GRAPH), pipeline="right-pass")
        assert caught.value.code == "E615"
        assert caught.value.at == ("package of_neg_package 1.0",)
        listed = smelt_command("passes").stdout
        assert "of_neg_package 1.0" in listed


@pytest.fixture
def smelt_command(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # lines are not wrapped then
    from typer.testing import CliRunner

    from smelt.cli.main import app

    return lambda *arguments: CliRunner().invoke(app, list(arguments))
