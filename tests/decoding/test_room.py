"""Caches of fixed size are told from recurrent states, and must hold all tokens."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from smelt.decoding.ports import Cache
from smelt.decoding.room import refuse_small_cache, room_of
from smelt.decoding.table_rows import rows_read_by
from smelt.errors import UsageError
from smelt.ir import text


def reading(nodes, rows=9):
    """A model that reads a table by the input ``position``."""
    table = ", ".join(["0"] * rows)
    return text.parse(
        '<ir_version: 10, opset_import: ["": 18]> g (int64[B,S] position) => (float[B,S] y)'
        f" <float[{rows}] table = {{{table}}}, int64[1] two = {{2}}, int64 axis = {{0}}> {{ {nodes} }}"
    )


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("y = Gather(table, position)", 9),
        ("p = Cast<to = 6>(position) q = Add(two, p) y = Gather(table, q)", 7),
        ("p = Mul(position, two) y = Gather(table, p)", None),
        ("p = Add(position, position) y = Gather(table, p)", None),
        ("y = Cast<to = 1>(position)", None),
    ],
)
def test_rows_of_a_table_limit_what_reads_it(nodes, expected):
    assert rows_read_by(reading(nodes), "position") == expected


@dataclass
class Step:
    """A program of one token a call, whose caches ``write`` changes at a position."""

    caches: dict
    write: object
    positions: str | None = "position"

    @property
    def network(self):
        """The ports of the program."""
        caches = [Cache(name, f"new_{name}", "replaced") for name in self.caches]
        ports = SimpleNamespace(positions=self.positions, caches=caches)
        return SimpleNamespace(ports=ports, positions=None)

    def run(self, tokens, state, constants):
        """Write a token."""
        for name, shape in self.caches.items():
            array = state.caches.get(name, np.zeros(shape)).copy()
            self.write(array, state.length)
            state.caches[name] = array
        state.length += 1


def rows(array, position):
    """Write a row at the position, along axis 1."""
    array[:, position] = 1


def columns(array, position):
    """Write along axis 2."""
    array[:, :, position] = 1


def everywhere(array, position):
    """Change all of a state."""
    array += 1


@pytest.mark.parametrize(
    ("caches", "write", "positions", "expected"),
    [
        ({"k": (1, 32, 16), "v": (1, 24, 16)}, rows, "position", 24),
        ({"k": (1, 4, 32, 16)}, columns, "position", 32),
        ({"h": (1, 32, 16)}, everywhere, "position", None),
        ({"k": (1, 32, 16)}, rows, None, None),
        ({}, rows, "position", None),
    ],
)
def test_the_room_is_the_axis_that_a_token_is_written_along(caches, write, positions, expected):
    assert room_of(Step(caches, write, positions), 1, {}, may_run=True) == expected


@pytest.mark.parametrize(("width", "count"), [(3, 30), (32, 1), (1, 32)])
def test_all_tokens_but_the_last_fit(width, count):
    refuse_small_cache(32, width, count)


@pytest.mark.parametrize(
    ("width", "count", "fix"),
    [(3, 31, "--tokens 30$"), (32, 2, "--tokens 1$"), (33, 1, "positions$")],
)
def test_too_many_tokens(width, count, fix):
    with pytest.raises(UsageError, match="room for 32 tokens") as caught:
        refuse_small_cache(32, width, count)
    assert caught.value.code == "E806"
    assert caught.value.fix is not None
    assert caught.value.fix.endswith(fix.rstrip("$"))


def test_a_program_that_needs_another_is_not_run():
    assert room_of(Step({"k": (1, 32, 16)}, None), 1, {}, may_run=False) is None
