"""The clauses of Needs and Keeps are numbered, and the guarding line of code names its number.

::

    Needs    (1) opset 20; (2) constants close to those above.
    Keeps    (1) doubles.

    @rule(gelu, min_opset=20)  # needs 1, 2
    if m["x"].dtype == ir.DataType.DOUBLE:  # keeps 1

A line in another file of the folder also names the pass: ``# fuse_attention needs 8``.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from smelt.passes import registry

PLACES = [place for place, _ in registry.own_passes()]
PROMISES = re.compile(r"^Needs {4}(?P<needs>.*)^Keeps {4}(?P<keeps>.*?)(?:\n\n|\Z)", re.M | re.S)
COMMENT = re.compile(r"# (?:(\w+) )?((?:needs|keeps) \d.*)")
LISTS = re.compile(r"(needs|keeps)((?:,? \d+)+)")

Numbers = dict[str, set[int]]


def numbered(page: str) -> Numbers:
    """Return the numbers of the clauses, which count from 1."""
    found = PROMISES.search(page)
    assert found is not None
    counted = {}
    for kind in ("needs", "keeps"):
        numbers = [int(number) for number in re.findall(r"(?<!\w)\((\d+)\) ", found[kind])]
        assert numbers == list(range(1, len(numbers) + 1))
        assert found[kind].startswith("(1) ")
        counted[kind] = set(numbers)
    return counted


def noted(source: str, name: str = "") -> Numbers:
    """Return the numbers that comments of ``source`` refer to for the pass ``name``."""
    found: Numbers = {"needs": set(), "keeps": set()}
    for owner, text in COMMENT.findall(source):
        for kind, numbers in LISTS.findall(text) if owner == name else ():
            found[kind].update(map(int, re.findall(r"\d+", numbers)))
    return found


@pytest.mark.parametrize("place", PLACES, ids=[place.rpartition(".")[2] for place in PLACES])
def test_every_number_of_the_page_is_in_the_code_and_none_else(place: str) -> None:
    module, name = import_module(place), place.rpartition(".")[2]
    assert module.__file__ is not None
    assert module.__doc__ is not None
    path = Path(module.__file__)
    found = noted(path.read_text(encoding="utf-8"))
    for other in path.parent.glob("*.py"):
        for kind, numbers in noted(other.read_text(encoding="utf-8"), name).items():
            found[kind] |= numbers
    assert found == numbered(module.__doc__)


def test_comments_are_read_as_they_are_written() -> None:
    source = "a  # needs 1, 3, keeps 2\nb  # keeps 4\nc  # other_pass needs 5\nd = 'it needs 6'"
    assert noted(source) == {"needs": {1, 3}, "keeps": {2, 4}}
    assert noted(source, "other_pass") == {"needs": {5}, "keeps": set()}
