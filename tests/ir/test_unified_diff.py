"""Unified differences: what they say gives the other side back, and long ones stay quick."""

import difflib
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smelt.ir.unified_diff import unified_diff

LINES = st.lists(st.sampled_from(["a", "b", "c", "}", ""]), max_size=20)


def patched(lines, difference):
    """``lines`` with ``difference`` applied, as patch(1) does; every hunk has to fit."""
    found, at = [], 0
    for line in difference:
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            here = int(start) if count == "0" else int(start) - 1
            found += lines[at:here]
            at = here
        elif line[0] == "+":
            found.append(line[1:])
        else:
            assert lines[at] == line[1:]
            found += [line[1:]] if line[0] == " " else []
            at += 1
    return found + lines[at:]


@given(LINES, LINES, st.sampled_from([0, 1, 3]))
def test_a_difference_makes_one_of_the_other(a, b, context):
    difference = unified_diff(a, b, context)
    assert patched(a, difference) == b
    assert bool(difference) == (a != b)


def test_hunks_are_those_of_difflib_where_lines_are_their_own():
    a = [f"line {i}" for i in range(100)]
    b = [*a[:10], "new", *a[10:50], *a[52:], "last"]
    assert unified_diff(a, b) == list(difflib.unified_diff(a, b, lineterm=""))[2:]


def test_lines_beside_lines_of_their_own_are_kept():
    a = [line for i in range(40) for line in (f"line {i}", "}", "}")]
    b = [*a[:30], "new", *a[30:61], *a[62:]]
    assert unified_diff(a, b) == list(difflib.unified_diff(a, b, lineterm=""))[2:]


@pytest.mark.parametrize(
    "line",
    [lambda i: f"v{i} = Relu(v{i - 1})", lambda i: "}", lambda i: f"v{i % 7}"],
    ids=["own", "alike", "few"],
)
def test_long_listings_take_no_quadratic_time(line):
    rng = random.Random(0)
    a = [line(i) for i in range(20_000)]
    b = list(a)
    for _ in range(1_000):
        b[rng.randrange(len(b))] += "!"
    began = time.process_time()
    difference = unified_diff(a, b)
    assert time.process_time() - began < 5
    assert patched(a, difference) == b


def test_a_moved_line_is_all_that_differs():
    a = [f"v{i}" for i in range(50)]
    b = [*a[:10], *a[11:30], a[10], *a[30:]]
    changed = [line for line in unified_diff(a, b) if line[0] in "+-"]
    assert changed == ["-v10", "+v10"]
