"""Caches of fixed size are told from recurrent states, and must hold all tokens."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from smelt.decoding.ports import Cache
from smelt.decoding.room import refuse_small_cache, room_of
from smelt.errors import UsageError


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
        return SimpleNamespace(ports=SimpleNamespace(positions=self.positions, caches=caches))

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
    assert room_of(Step(caches, write, positions), 1, {}) == expected


@pytest.mark.parametrize(("width", "count"), [(3, 30), (32, 1), (1, 32)])
def test_all_tokens_but_the_last_fit(width, count):
    refuse_small_cache(32, width, count)


@pytest.mark.parametrize(
    ("width", "count", "fix"), [(3, 31, "--tokens 30$"), (32, 2, "--tokens 1$"), (33, 1, "caches$")]
)
def test_too_many_tokens(width, count, fix):
    with pytest.raises(UsageError, match="room for 32 tokens") as caught:
        refuse_small_cache(32, width, count)
    assert caught.value.code == "E806"
    assert caught.value.fix is not None
    assert caught.value.fix.endswith(fix.rstrip("$"))
