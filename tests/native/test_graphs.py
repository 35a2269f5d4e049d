"""The native engine makes of graphs what ``graphs.txt`` says, which is read when an entry changes.

An entry has what target ``c`` emits in two shards and what the host compiles: kernels in order,
bytes of the arena, and digests of the weights and of the C; or the errors. ``emitted.json`` has the
models of the tests of kernels, this table the graphs that reach the rest.
``PYTHONPATH=src:tests python tests/native/test_graphs.py`` writes the entries again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from emitted import Facts, for_c, for_host
from recorded import made_or_refused, rows, with_numbers, write
from sized_library import Sized

TABLE = Path(__file__).with_name("graphs.txt")
WAYS: tuple[Callable[[Sized, int], Facts], ...] = (partial(for_c, threads=2), for_host)


def entry(row: str) -> str:
    """Return the entry of a row."""
    return " | ".join(made_or_refused(lambda way=way: emitted(row, way)) for way in WAYS)


def emitted(row: str, way: Callable[[Sized, int], Facts]) -> str:
    """Return the facts of what ``way`` emits for the graph of ``row``."""
    opset, _, graph = with_numbers(row).partition(": ")
    made = way(Sized(f"g {graph}"), int(opset.removeprefix("opset ")))
    return (
        f"{made['kernels']}, {made['arena bytes']} bytes, {made['weights']} {made['digest of C']}"
    )


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_engine_emits_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/native/test_graphs.py"


if __name__ == "__main__":
    write(TABLE, entry)
