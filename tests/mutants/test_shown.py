"""Verification is proved by mutation: each pass with one mistake, which it has to name."""

from __future__ import annotations

import pytest
from mutants import by_hand, fuse, quantize, simplify
from mutants.shown import Shown
from random_graphs.mutation import applied

from smelt.compiler import optimize_model
from smelt.errors import Mismatch
from smelt.ir import text
from smelt.passes.pipeline import parse, passes_of

SHOWN = [*by_hand.SHOWN, *simplify.SHOWN, *quantize.SHOWN, *fuse.SHOWN]


@pytest.fixture(autouse=True)
def _reproducers_in_the_test_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def run(shown: Shown, verify) -> None:
    model = text.parse(shown.graph, shown.opset)
    optimize_model(
        model,
        pipeline=shown.pass_,
        verify=verify,
        operators=shown.operators,
        highest_opset=0,
    )


@pytest.mark.parametrize("shown", SHOWN, ids=str)
def test_a_wrong_pass_is_named(shown: Shown) -> None:
    run(shown, "each")
    with applied(shown.mutant):
        with pytest.raises(Mismatch) as each:
            run(shown, "each")
        with pytest.raises(Mismatch) as final:
            run(shown, "final")
    assert each.value.code == "E701"
    assert f"pass {shown.pass_} changed the result" in each.value.what
    assert final.value.code == "E702"


def test_every_default_pass_has_a_mutant() -> None:
    """A new pass comes with a mistake that somebody could make in it."""
    passes = {pass_.spelling for pass_ in passes_of(parse("default"))}
    assert passes - {shown.pass_ for shown in SHOWN} == set()
