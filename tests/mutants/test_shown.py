"""Verification names the pass that has a mistake, whatever kind of mistake that is.

That the tests of a pass notice mistakes in it is the business of ``guards.py`` and ``make mutants``.
"""

from __future__ import annotations

import pytest
from mutants.by_hand import SHOWN
from mutants.shown import Shown
from random_graphs.mutation import applied

from smelt.compiler import optimize_model
from smelt.errors import Mismatch
from smelt.ir import text


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
