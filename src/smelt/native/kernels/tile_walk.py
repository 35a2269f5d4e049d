"""How tiles of products go through the dim that they sum over."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Walk:
    """How a tile goes through the shared dim, as C.

    ``parameters`` and ``arguments`` are those of the tile; ``heads`` are loops, the last of which
    holds ``steps``: for each step, what all rows read of A, with ``@`` for the row's number or its
    entry in ``places``, and the address of B. ``before`` and ``after`` stand around the steps.
    Where they are ``apart``, each step has sums of its own, which are added up at the end; the
    first one is taken once more where ``rest`` says so.
    """

    name: str
    parameters: str
    heads: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]
    before: str = ""
    after: str = ""
    row_start: str = ""
    places: tuple[int, ...] = ()
    apart: bool = False
    rest: str = ""


STRIDED = Walk(
    name="dot",
    parameters="ptrdiff_t kn, const float *restrict a, ptrdiff_t am, ptrdiff_t ak, "
    "const float *restrict b, ptrdiff_t bk",
    heads=("for (ptrdiff_t k = 0; k < kn; ++k)",),
    steps=(("a[@ * am]", "b"),),
    after="a += ak, b += bk;",
)
"""``a[row * am + k * ak]`` times ``b[k * bk + column]``."""


PAIRED = replace(
    STRIDED,
    name="pairs",
    heads=("for (ptrdiff_t k = 0; k + 1 < kn; k += 2)",),
    steps=(("a[@ * am]", "b"), ("a[@ * am + ak]", "b + bk")),
    after="a += 2 * ak, b += 2 * bk;",
    apart=True,
    rest="kn % 2",
)
"""The same with two sums for each, so that as many additions need not wait for each other."""


LINE = 16
"""Floats that a fetch brings."""


def fetching(elements: int) -> Walk:
    """As ``STRIDED``, and each step fetches so many elements from ``ahead`` on, which follow."""
    return _fetching(STRIDED, elements)


def _fetching(walk: Walk, elements: int) -> Walk:
    fetched = (f"FETCH(ahead + {at});" for at in range(0, elements, LINE))
    return replace(
        walk,
        name=f"{walk.name}_ahead{elements}",
        parameters=f"{walk.parameters}, const float *ahead",
        after=" ".join([walk.after, *fetched, f"ahead += {elements};"]),
    )


def packed_rows(rows: int, fetched: int = 0) -> Walk:
    """As ``STRIDED``, for an A that lies there step by step; each fetches elements as above."""
    walk = Walk(
        name=f"packed{rows}",
        parameters="ptrdiff_t kn, const float *restrict a, const float *restrict b, ptrdiff_t bk",
        heads=STRIDED.heads,
        steps=(("a[@]", "b"),),
        after=f"a += {rows}, b += bk;",
    )
    return _fetching(walk, fetched) if fetched else walk
