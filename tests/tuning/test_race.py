"""Races by a clock that only the racers move: what the figures say of known times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, repeat
from typing import Any

import pytest

from smelt.errors import InvalidModel
from smelt.tuning.race import SESSIONS, Comparison, race
from smelt.tuning.search import HARMLESS, PAYS, QUICKER, _pays

SOURCE = 10.0


class Machine:
    """A clock, and sessions whose opening and runs move it."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def opener(self, runs: Iterator[float], opening: float = 1.0) -> Callable[[], Any]:
        """Each session takes the next of ``runs`` for all its runs."""
        return lambda: Session(self, next(runs), opening)


class Session:
    def __init__(self, machine: Machine, cost: float, opening: float) -> None:
        self.machine, self.cost = machine, cost
        machine.now += opening

    def run(self, names: object, feeds: object) -> None:
        self.machine.now += self.cost


def _comparison(*costs: float, opening: float = 1.0, threads: int = 1) -> Comparison:
    """One whose sessions take ``costs`` in turn, against one that always takes ``SOURCE``."""
    machine = Machine()
    opens = [machine.opener(repeat(SOURCE)), machine.opener(cycle(costs), opening)]
    return race(opens, {}, 0, threads, (machine.clock, machine.clock))[1]


@pytest.mark.parametrize("threads", [1, 2])
def test_known_times_give_their_ratio(threads: int) -> None:
    found = _comparison(8.0, threads=threads)
    assert (found.ratio, found.low, found.high) == (pytest.approx(0.8),) * 3
    assert found.creation == pytest.approx(1.0)


def test_of_three_sessions_the_middle_one_counts_and_the_ends_are_told() -> None:
    assert SESSIONS == 3
    found = _comparison(8.0, 12.0, 9.0)
    assert (found.low, found.ratio, found.high) == tuple(map(pytest.approx, (0.8, 0.9, 1.2)))


def test_a_gain_pays_only_if_no_session_lost() -> None:
    assert _pays(_comparison(SOURCE * PAYS * 0.99))
    assert not _pays(_comparison(SOURCE * (PAYS + 0.002)))
    assert not _pays(_comparison(8.0, 10.1, 9.0))


def test_a_session_that_opens_sooner_pays_if_it_is_no_slower() -> None:
    assert _pays(_comparison(SOURCE, opening=QUICKER * 0.99))
    assert not _pays(_comparison(SOURCE, opening=QUICKER * 1.05))
    assert not _pays(_comparison(SOURCE * (HARMLESS + 0.002), opening=0.1))


@pytest.mark.parametrize("opening", [0.0, 1.0])
def test_sessions_that_open_within_a_tick_of_the_clock_have_a_ratio(opening: float) -> None:
    machine = Machine()
    opens = [machine.opener(repeat(SOURCE), 0.0), machine.opener(repeat(SOURCE), opening)]
    comparison = race(opens, {}, 0, 1, (machine.clock, machine.clock))[1]
    assert comparison.ratio == pytest.approx(1.0)
    assert (comparison.creation > 1) == (opening > 0)


class Broken:
    def run(self, names: object, feeds: object) -> None:
        raise RuntimeError("FAIL: an index is out of range")


def _refused() -> Any:
    raise RuntimeError("FAIL: no such type")


@pytest.mark.parametrize(
    ("opened", "code", "said"), [(_refused, "E320", "type"), (Broken, "E321", "index")]
)
def test_candidates_that_fail_are_reported_by_code(opened: Any, code: str, said: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        race([opened], {}, 0, 1)
    assert caught.value.code == code
    assert said in caught.value.why
