"""Wrapping of negative indices before a Gather is dropped."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.errors import InvalidModel
from smelt.ir import text
from smelt.passes.simplify.fold_index_wrap import fold_index_wrap
from smelt.runtime.runner import open_runner

ROWS = np.arange(15, dtype=np.float32).reshape(5, 3)
WRAP = "negative = Less(i, zero) added = Add(i, n) w = Where(negative, added, i)"


def constants(kind: str, n: int = 5, low: int = 0, high: int = 4) -> str:
    held = {"zero": 0, "n": n, "low": low, "high": high}
    return ", ".join(f"{kind} {name} = {{{number}}}" for name, number in held.items())


def graph(kind: str, **numbers: int) -> str:
    return f"g (float[5,3] x, {kind}[K] i) => (float[K,3] y) <{constants(kind, **numbers)}>"


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("added", ["Add(i, n)", "Add(n, i)"])
def test_gather_counts_from_the_end_itself(kind: str, added: str) -> None:
    body = WRAP.replace("Add(i, n)", added)
    check_rewrite(
        fold_index_wrap,
        f"{graph(kind)} {{ {body} y = Gather(x, w) }}",
        f"{graph(kind)} {{ y = Gather(x, i) }}",
        feeds={"x": ROWS, "i": np.asarray([-5, 4, 0, -1], kind)},
    )


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_a_clip_and_its_mask_take_the_index_as_it_is(kind: str) -> None:
    rest = "y = Gather(x, c)"
    g = graph(kind).replace("(float[K,3] y)", "(float[K,3] y, bool[K] ok)")
    after = g.replace("<", f"<{kind} first = {{-5}}, ", 1)
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    check_rewrite(
        fold_index_wrap,
        f"{g} {{ {WRAP} c = Clip(w, low, high) ok = Equal(w, c) {rest} }}",
        f"{after} {{ c = Clip(i, first, high) ok = Equal(i, c) d = Clip(i, first, high)"
        " y = Gather(x, d) }",
        feeds={"x": ROWS, "i": np.asarray([least, -6, -5, -1, 0, 4, 5, most], kind)},
    )


def test_along_another_axis() -> None:
    g = f"g (float[3,5] x, int64[K] i) => (float[3,K] y) <{constants('int64')}>"
    check_rewrite(
        fold_index_wrap,
        f"{g} {{ {WRAP} y = Gather<axis = -1>(x, w) }}",
        f"{g} {{ y = Gather<axis = -1>(x, i) }}",
        feeds={"x": ROWS.T, "i": np.asarray([-5, 4])},
    )


def test_other_readers_of_the_index_keep_the_wrap() -> None:
    g = graph("int64").replace("(float[K,3] y)", "(float[K,3] y, int64[K] w)")
    check_rewrite(
        fold_index_wrap,
        f"{g} {{ {WRAP} y = Gather(x, w) }}",
        f"{g} {{ {WRAP} y = Gather(x, i) }}",
        feeds={"x": ROWS, "i": np.asarray([-5, 4])},
    )


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            f"{graph('int64', n=4)} {{ {WRAP} y = Gather(x, w) }}",
            "not proved to be the size of the gathered axis",
        ),
        (
            f"{graph('int64', high=3)} {{ {WRAP} c = Clip(w, low, high) y = Gather(x, c) }}",
            "the bounds of the Clip are not 0 and",
        ),
        (
            f"{graph('int64', low=1)} {{ {WRAP} c = Clip(w, low, high) y = Gather(x, c) }}",
            "the bounds of the Clip are not 0 and",
        ),
    ],
    ids=["another size", "fewer rows", "without the first"],
)
def test_other_numbers_stay(source: str, why: str) -> None:
    check_unchanged(fold_index_wrap, source)
    stats = run_pass(fold_index_wrap, text.parse(source))
    assert any(why in reason for _, reason in stats.missed)


@pytest.mark.parametrize(
    "body",
    [
        "negative = Less(i, n) added = Add(i, n) w = Where(negative, added, i) y = Gather(x, w)",
        "negative = Less(i, zero) added = Add(i, n) w = Where(negative, i, added) y = Gather(x, w)",
        "negative = Less(i, zero) added = Add(j, n) w = Where(negative, added, i) y = Gather(x, w)",
    ],
    ids=["below another number", "the other way round", "another index"],
)
def test_near_misses_stay(body: str) -> None:
    given = "float[5,3] x, int64[K] i, int64[K] j"
    g = f"g ({given}) => (float[K,3] y) <{constants('int64')}>"
    check_unchanged(fold_index_wrap, f"{g} {{ {body} }}")


def test_unsigned_indices_and_unknown_sizes_stay() -> None:
    mask = "c = Clip(w, low, high) ok = Equal(w, c)"
    g = f"g (uint8[K] i) => (bool[K] ok) <{constants('uint8')}>"
    check_unchanged(fold_index_wrap, f"{g} {{ {WRAP} {mask} }}")
    g = f"g (float[N,3] x, int64[K] i) => (float[K,3] y) <{constants('int64')}>"
    check_unchanged(fold_index_wrap, f"{g} {{ {WRAP} y = Gather(x, w) }}")


def test_an_index_that_lies_nowhere_stays_an_error() -> None:
    model = text.parse(f"{graph('int64')} {{ {WRAP} y = Gather(x, w) }}")
    run_pass(fold_index_wrap, model)
    with pytest.raises(InvalidModel, match="E321"):
        open_runner(model)(ROWS, np.asarray([7]))
