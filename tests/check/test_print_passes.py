"""The lines that are printed after passes, and their limit."""

from __future__ import annotations

import pytest

from smelt.check.print_passes import MOST_NAMED, PrintPasses, first_lines, wanted_passes

LINES = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("limit", "printed"),
    [
        (0, LINES),
        (1, ["a", "... 2 more lines (--print-limit 0 shows all)"]),
        (2, ["a", "b", "... 1 more lines (--print-limit 0 shows all)"]),
        (3, LINES),
        (4, LINES),
    ],
)
def test_lines_up_to_a_limit_are_printed_and_the_others_counted(limit, printed):
    assert list(first_lines(LINES, limit)) == printed


def test_all_lines_are_printed_unless_there_is_a_limit():
    assert PrintPasses(print).limit == 0


def test_a_stage_stands_for_its_passes():
    stage = wanted_passes("cleanup")
    assert stage is not None
    assert "dead-code-elimination" in stage
    assert wanted_passes("cleanup, fuse-swish") == stage | {"fuse-swish"}
    assert "fuse-swish" not in stage
    assert wanted_passes("fuse-swish,all") is None


@pytest.mark.parametrize("more", [0, 1, 3])
def test_passes_without_effect_are_named_up_to_a_number(more):
    names = [f"pass-{i}" for i in range(MOST_NAMED + more)]
    written = []
    PrintPasses(written.append, changed=frozenset(names)).finish()
    others = f" and {more} others" if more else ""
    assert written == [f"*** not in the pipeline: {', '.join(names[:MOST_NAMED])}{others} ***"]
