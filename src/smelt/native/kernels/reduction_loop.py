"""The loop of a float micro-kernel over the reduction axis."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ReductionLoop:
    """The loop of a micro-kernel over the reduction axis, as C.

    - ``parameters`` are those of the micro-kernel.
    - ``heads`` are loop heads, outermost first; the innermost loop contains ``steps``.
    - ``steps`` are pairs: the element of A for a row, and the address of B. ``@`` is the row
      number, or the row's entry in ``offsets``.
    - ``before`` and ``after`` are statements around the steps.
    - With ``apart``, each step has sums of its own, which are added at the end. If the C condition
      ``rest`` holds after the loop, the first step runs once more.
    """

    name: str
    parameters: str
    heads: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]
    before: str = ""
    after: str = ""
    row_start: str = ""
    offsets: tuple[int, ...] = ()
    apart: bool = False
    rest: str = ""


STRIDED = ReductionLoop(
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
"""Like ``STRIDED``, with two sums each, so that additions wait less for each other."""


LINE = 16
"""The floats that a prefetch loads."""


def fetching(elements: int) -> ReductionLoop:
    """Return ``STRIDED`` with a prefetch of ``elements`` contiguous floats at ``ahead`` per
    step."""
    return _with_prefetch(STRIDED, elements)


def _with_prefetch(reduction_loop: ReductionLoop, elements: int) -> ReductionLoop:
    """Return ``reduction_loop`` with a prefetch of ``elements`` contiguous floats per step."""
    fetched = (f"FETCH(ahead + {at});" for at in range(0, elements, LINE))
    return replace(
        reduction_loop,
        name=f"{reduction_loop.name}_ahead{elements}",
        parameters=f"{reduction_loop.parameters}, const float *ahead",
        after=" ".join([reduction_loop.after, *fetched, f"ahead += {elements};"]),
    )


def packed_rows(rows: int, fetched: int = 0) -> ReductionLoop:
    """Return the loop over a packed A, with a prefetch of ``fetched`` floats per step."""
    reduction_loop = ReductionLoop(
        name=f"packed{rows}",
        parameters="ptrdiff_t kn, const float *restrict a, const float *restrict b, ptrdiff_t bk",
        heads=STRIDED.heads,
        steps=(("a[@]", "b"),),
        after=f"a += {rows}, b += bk;",
    )
    return _with_prefetch(reduction_loop, fetched) if fetched else reduction_loop
