"""The most that sizes come to which grow in each round."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from smelt.program.growth import after_iterations


def each(
    change: Callable[[int], int | None],
) -> Callable[[Mapping[str, int]], dict[str, int] | None]:
    def one(largest: Mapping[str, int]) -> dict[str, int] | None:
        after = {name: change(size) for name, size in largest.items()}
        known = {name: size for name, size in after.items() if size is not None}
        return known if len(known) == len(after) else None

    return one


@pytest.mark.parametrize(
    ("change", "rounds", "most"),
    [
        (lambda n: n + 3, 10**6, 2 + 3 * 10**6),
        (lambda n: n, None, 2),
        (lambda n: 7, None, 7),
        (lambda n: n // 2, 5, 2),
        (lambda n: 2 * n, 5, 64),
        (lambda n: min(n + 3, 9), 10**6, 9),
        (lambda n: n + 3, 0, 2),
        (lambda n: n + 3, 1, 5),
        (lambda n: 2 * n, 10**6, None),
        (lambda n: n + 3, None, None),
        (lambda n: None, 5, None),
        (lambda n: n + (3 if n < 99 else 4), 10**6, None),
    ],
)
def test_rounds(change: Callable[[int], int | None], rounds: int | None, most: int | None) -> None:
    found = after_iterations({"n": 2}, rounds, each(change))
    assert found == (None if most is None else {"n": most})


def test_a_long_loop_is_tried_a_few_times_only() -> None:
    asked = []

    def one(largest: Mapping[str, int]) -> dict[str, int]:
        asked.append(largest["n"])
        return {"n": largest["n"] + 1}

    assert after_iterations({"n": 0}, 10**9, one) == {"n": 10**9}
    assert len(asked) == 3


def test_sizes_that_hang_on_each_other() -> None:
    def one(largest: Mapping[str, int]) -> dict[str, int]:
        return {"n": largest["n"] + largest["m"], "m": largest["m"] + 1}

    assert after_iterations({"n": 0, "m": 1}, 4, one) == {"n": 10, "m": 5}
