"""A mutant is put into a running process: into functions that other modules have imported, too.

Tests run there until one fails.
"""

from __future__ import annotations

import gc
from pathlib import Path
from types import SimpleNamespace

import pytest
from mutants import forking, importing
from mutants.blocks import RECORD
from mutants.nearest import ROOT
from mutants.sites import shown, sites

from smelt.ir import rows
from smelt.ir.rows import rows_taken

PATH = "src/smelt/ir/rows.py"


def test_functions_get_the_code_of_the_mutant(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(ROOT, PATH).read_text(encoding="utf-8")
    site = next(
        each for each in sites(source, PATH) if shown(source, each) == "step > 0 -> step <= 0"
    )
    live = {str(ROOT / PATH): forking.functions()[rows.__file__]}
    before = {f: f.__code__ for found in live[str(ROOT / PATH)].values() for f in found}
    monkeypatch.setenv(importing.MUTANT, "")
    monkeypatch.setitem(rows.__dict__, RECORD, bytearray(100))
    right = rows_taken(5, (1, 9, 1))
    try:
        forking.swap(site, live)
        assert rows_taken(5, (1, 9, 1)) != right
    finally:
        gc.unfreeze()
        for function, code in before.items():
            function.__code__ = code
    assert rows_taken(5, (1, 9, 1)) == right == range(1, 5)


@pytest.mark.parametrize("fails", [None, "a", "b"])
def test_files_that_are_not_collected_are_no_failure_of_a_test(
    fails: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Pytest counts such files as failed tests of the session.

    ``run`` limits the CPU time of its process, which here would be that of all later tests.
    """
    monkeypatch.setattr(forking.resource, "setrlimit", lambda *limit: None)
    monkeypatch.setenv(forking.AT, str(tmp_path / "at"))
    session = SimpleNamespace(testsfailed=2)

    def protocol(item: SimpleNamespace, nextitem: object) -> None:
        session.testsfailed += item.nodeid == fails

    hook = SimpleNamespace(pytest_runtest_protocol=protocol)
    config = SimpleNamespace(hook=hook)
    items = [SimpleNamespace(nodeid=name, session=session, config=config) for name in "ab"]
    assert forking.run(items, 60) == {"failed": fails}
