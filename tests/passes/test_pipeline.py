"""The pipeline language is parsed, printed back, and refused with a code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from smelt.errors import UsageError
from smelt.passes import registry
from smelt.passes.base import Pass
from smelt.passes.pipeline import Fixpoint, Step, check_order, parse, to_text
from smelt.registry import Owner


@dataclass(frozen=True)
class Knobs:
    size: int = 4
    ratio: float = 0.5
    fast: bool = False
    skip: tuple[str, ...] = ()
    limit: int | None = None


def nothing(*_: object) -> None:
    """Do nothing, as the body of a pass."""


ONE = Pass("pass_one", "One.", nothing, options_type=Knobs)
TWO = Pass("pass_two", "Two.", nothing, after=("pass_one",))


@pytest.fixture(autouse=True)
def two_passes() -> Iterator[None]:
    with registry.PASSES.refilled():
        for pass_ in (ONE, TWO):
            registry.PASSES.add(pass_.name, pass_, Owner(__name__))
        yield


SAME = [
    "pass-one",
    "pass-one,pass-two",
    "fixpoint(pass-one,pass-two){max=3}",
    "pass-one{size=8 fast=true},fixpoint(pass-two,fixpoint(pass-one){max=2}){max=8}",
    "pass-one{ratio=0.25 skip=Resize,Range limit=7}",
    "",
]


@pytest.mark.parametrize("text", SAME)
def test_prints_back(text: str) -> None:
    assert to_text(parse(text)) == text


OTHER = {
    "spaces and underscores": (" pass_one , pass-two ", "pass-one,pass-two"),
    "a flag stands for true": ("pass-one{fast}", "pass-one{fast=true}"),
    "defaults are left out": ("pass-one{size=4}", "pass-one"),
    "the default number of rounds": ("fixpoint(pass-one)", "fixpoint(pass-one){max=8}"),
}


@pytest.mark.parametrize(("text", "printed"), OTHER.values(), ids=OTHER.keys())
def test_canonical_text(text: str, printed: str) -> None:
    assert to_text(parse(text)) == printed


def test_options_are_typed() -> None:
    [step] = parse("pass-one{size=8 skip=A,B}")
    assert isinstance(step, Step)
    assert step.options == Knobs(size=8, skip=("A", "B"))


def test_a_pipeline_file_with_comments(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    path.write_text("pass-one,  # first\nfixpoint(pass-one)\n")
    assert [type(step) for step in parse(f"@{path}")] == [Step, Fixpoint]


BAD = {
    "unknown pass": ("pass-onr", "E601", "did you mean 'pass-one'"),
    "trailing comma": ("pass-one,", "E602", "name of a pass"),
    "unclosed": ("fixpoint(pass-one", "E602", "',' or ')'"),
    "junk": ("pass-one;pass-two", "E602", "a comma or the end"),
    "unknown option": ("pass-one{sise=3}", "E603", "its options are size"),
    "bad number": ("pass-one{size=big}", "E603", "of the type int"),
    "bad flag": ("pass-one{fast=maybe}", "E603", "of the type bool"),
    "no options": ("pass-two{size=3}", "E603", "no options"),
    "no rounds": ("fixpoint(pass-one){max=0}", "E603", "positive"),
    "order": ("pass-two,pass-one", "E604", "must come after pass-one"),
    "no file": ("@/no/such/file", "E606", "cannot read"),
}


@pytest.mark.parametrize(("text", "code", "says"), BAD.values(), ids=BAD.keys())
def test_refused(text: str, code: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.code == code
    assert says in str(caught.value)


def test_order_is_that_of_first_occurrences() -> None:
    check_order((Step(ONE), Step(TWO), Step(ONE)))
    with pytest.raises(UsageError):
        check_order((Fixpoint((Step(TWO), Step(ONE))),))
