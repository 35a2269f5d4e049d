"""QR steps with two shifts at once, which bring a Hessenberg form to the real form of Schur.

After LAPACK's ``dlahqr``, so that eigenvalues come in its order: J. G. F. Francis, "The QR
transformation", 1961 and 1962; deflation after M. Ahues and F. Tisseur, LAPACK Working Note 122.
A matrix is ``[n + 1, n + 1]``; its last row and column are zeros, so no reduction is of nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.matrices import ints, places, product, transposed
from smelt.operators.linalg.standard_blocks import standard

STEPS = 30
"""Steps for an eigenvalue, times the larger of 10 and the rows, after which none is found."""

UNUSUAL = 10
"""After so many steps without an eigenvalue, other shifts are taken."""

LEAST = 2.0**-970
"""What counts as nothing below the diagonal of a matrix whose largest element is 1."""


Indexes = tuple[Tensor, Tensor]
"""Those of the rows, as a column, and of the columns, as a row: found once, outside of loops."""


class Bands(NamedTuple):
    """The diagonal, and what is left of it and above it, as rows ``[1, n + 1]``."""

    diagonal: Tensor
    left: Tensor
    above: Tensor


class Shifts(NamedTuple):
    """Two shifts: a pair of conjugates ``x + iy`` and ``x2 - iy``, or real ones if ``y`` is 0."""

    x: Tensor
    y: Tensor
    x2: Tensor


class Chased(NamedTuple):
    """The state while a bulge moves down: the form, and vectors as columns."""

    form: Tensor
    vectors: Tensor


def real_schur(
    m: Nodes, form: Tensor, vectors: Tensor, count: Tensor, precision: float
) -> tuple[Chased, Tensor]:
    """The form of Schur of a Hessenberg form, its vectors, and whether steps did not end.

    ``count``, n, is a rank-0 int64. What is less than ``precision`` of its neighbours is nothing.
    Each turn of the loop is one step over the last block that is not done, or sets off what is:
    one row, or two in standard form.
    """
    limit = m.op("Max", count, 10) * STEPS
    indexes = r, c = places(m, form)

    def go_on(last: Tensor, stuck: Tensor, form: Tensor, vectors: Tensor) -> Tensor:
        return (last >= 0) & (stuck <= limit)

    def turn(last: Tensor, stuck: Tensor, form: Tensor, vectors: Tensor) -> tuple[Tensor, ...]:
        first = _first_of_block(m, bands(m, form, indexes), last, c, precision)
        form = m.where(m.equal(r, first) & m.equal(c, first - 1), 0.0, form)
        is_done = first >= last - 1
        stuck = stuck + 1
        after = _step(m, Chased(form, vectors), indexes, first, last, stuck, is_done, precision)
        after = _set_off(m, after, indexes, last, m.equal(first, last - 1), precision)
        stuck = m.where(is_done, stuck * 0, stuck)
        return m.where(is_done, first - 1, last), stuck, *after

    last, _, form, vectors = form.m.loop(go_on, turn, (count - 1, count * 0, form, vectors))
    return Chased(m.where(r <= c + 1, form, 0.0), vectors), last >= 0


def bands(m: Nodes, form: Tensor, indexes: Indexes) -> Bands:
    """What is on the diagonal and beside it."""
    r, c = indexes
    diagonal, above = (
        m.op("ReduceSum", m.where(m.equal(r, c - k), form, 0.0), ints(m, -2), keepdims=1)
        for k in (0, 1)
    )
    left = m.op("ReduceSum", m.where(m.equal(r, c + 1), form, 0.0), ints(m, -1), keepdims=1)
    return Bands(diagonal, transposed(m, left), above)


def before(m: Nodes, row: Tensor) -> Tensor:
    """At each place along the last axis what is one before it."""
    return m.op("Pad", row, ints(m, 1, -1), 0.0, ints(m, -1))


def behind(m: Nodes, row: Tensor) -> Tensor:
    """At each place along the last axis what is one after it."""
    return m.op("Pad", row, ints(m, -1, 1), 0.0, ints(m, -1))


def _first_of_block(m: Nodes, b: Bands, last: Tensor, c: Tensor, precision: float) -> Tensor:
    """The first row of the block that ends with row ``last``."""
    size, d = m.abs(b.left), b.diagonal
    upper = before(m, d)
    around = m.abs(upper) + m.abs(d)
    wider = before(m, size) + behind(m, size)
    around = m.where(m.equal(around, 0.0), wider, around)
    most, least = m.op("Max", size, m.abs(b.above)), m.op("Min", size, m.abs(b.above))
    apart = m.abs(upper - d)
    far, near = m.op("Max", m.abs(d), apart), m.op("Min", m.abs(d), apart)
    sums = m.where(far + most > 0.0, far + most, 1.0)
    bound = m.op("Max", LEAST, near * (far / sums) * precision)
    nothing = (size <= around * precision) & (least * (most / sums) <= bound)
    begins = ((size <= LEAST) | nothing) & (c <= last)
    return m.op("ReduceMax", m.where(begins, c, 0), keepdims=0)


def _at(m: Nodes, row: Tensor, place: Tensor) -> Tensor:
    """The rank-0 number of a row at ``place``, a rank-0 integer."""
    return m.op("Gather", m.op("Squeeze", row, ints(m, 0)), place)


def _shifts(m: Nodes, b: Bands, first: Tensor, last: Tensor, stuck: Tensor) -> Shifts:
    """Eigenvalues of the last two rows of the block; now and then others, from either end."""
    up = m.op("Max", last - 1, 0)
    d, side = _at(m, b.diagonal, last), _at(m, b.left, last)
    usual = (_at(m, b.diagonal, up), _at(m, b.above, last), side, d)
    low = m.abs(side) + m.abs(_at(m, b.left, up))
    second, third = m.op("Min", first + 1, last), m.op("Min", first + 2, last)
    top = m.abs(_at(m, b.left, second)) + m.abs(_at(m, b.left, third))

    def other(size: Tensor, corner: Tensor) -> tuple[Tensor, ...]:
        x = 0.75 * size + corner
        return x, -0.4375 * size, size, x

    from_top = m.equal(m.op("Mod", stuck, UNUSUAL), 0)
    from_below = m.equal(m.op("Mod", stuck, 2 * UNUSUAL), 0)
    chosen = usual
    for mask, others in (
        (from_top, other(top, _at(m, b.diagonal, first))),
        (from_below, other(low, d)),
    ):
        chosen = tuple(m.where(mask, x, y) for x, y in zip(others, chosen, strict=True))
    return _eigenvalues(m, *chosen)


def _eigenvalues(m: Nodes, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Shifts:
    """Of ``[[a, b], [c, d]]``: a pair, or twice the real one that is nearer to ``d``."""
    size = m.abs(a) + m.abs(b) + m.abs(c) + m.abs(d)
    scale = m.where(size > 0.0, size, 1.0)
    a, b, c, d = (x / scale for x in (a, b, c, d))
    middle = (a + d) * 0.5
    minor = (a - middle) * (d - middle) - b * c
    root = m.sqrt(m.abs(minor))
    one, two = middle + root, middle - root
    real = m.where(m.abs(one - d) <= m.abs(two - d), one, two)
    x = m.where(minor >= 0.0, middle, real) * scale
    return Shifts(x, m.where(minor >= 0.0, root, 0.0) * scale, x)


def _start(
    m: Nodes, b: Bands, s: Shifts, first: Tensor, last: Tensor, c: Tensor, precision: float
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The row from which a step may begin, two small elements above it, and its first vector."""
    d, below = b.diagonal, behind(m, b.left)
    after = behind(m, d)
    size = m.abs(d - s.x2) + m.abs(s.y) + m.abs(below)
    size = m.where(size > 0.0, size, 1.0)
    part = below / size
    x = part * behind(m, b.above) + (d - s.x) * ((d - s.x2) / size) + s.y * (s.y / size)
    y = part * (d + after - s.x - s.x2)
    z = part * behind(m, below)
    total = m.abs(x) + m.abs(y) + m.abs(z)
    total = m.where(total > 0.0, total, 1.0)
    x, y, z = x / total, y / total, z / total
    around = m.abs(before(m, d)) + m.abs(d) + m.abs(after)
    small = m.abs(b.left) * (m.abs(y) + m.abs(z)) <= precision * m.abs(x) * around
    allowed = small & (c > first) & (c <= last - 2)
    row = m.op("Max", first, m.op("ReduceMax", m.where(allowed, c, 0), keepdims=0))
    return row, tuple(_at(m, each, row) for each in (x, y, z))


def _step(
    m: Nodes,
    at: Chased,
    indexes: Indexes,
    first: Tensor,
    last: Tensor,
    stuck: Tensor,
    is_done: Tensor,
    precision: float,
) -> Chased:
    """One step with two shifts over rows ``first`` to ``last``; nothing if that is done."""
    r, c = indexes
    b = bands(m, at.form, indexes)
    begin, vector = _start(m, b, _shifts(m, b, first, last, stuck), first, last, c, precision)

    def chase(i: Tensor, form: Tensor, vectors: Tensor) -> tuple[Tensor, ...]:
        k = begin + i
        column = m.op("Gather", form, m.op("Max", k - 1, 0), axis=-1)
        own = [m.op("Gather", column, k + j) for j in (0, 1)]
        third = m.where(k + 2 <= last, m.op("Gather", column, m.op("Min", k + 2, last)), 0.0)
        starts = m.equal(i, 0)
        x, y, z = (m.where(starts, u, v) for u, v in zip(vector, (*own, third), strict=True))
        z = m.where(k + 2 <= last, z, 0.0)
        along, by, kept = _reflection(m, x, y, z)
        v = m.where(m.equal(r, k), 1.0, 0.0)
        for j, number in enumerate(along, 1):
            v = m.where(m.equal(r, k + j), number, v)
        vt = transposed(m, v)
        form = form - by * v * product(m, vt, form)
        form = form - product(m, form, v) * (by * vt)
        vectors = vectors - product(m, vectors, v) * (by * vt)
        cleared = (r > k) & (r <= k + 2)
        in_column = m.equal(c, k - 1)
        form = m.where(in_column & cleared, 0.0, form)
        return m.where(in_column & m.equal(r, k) & ~starts, kept, form), vectors

    return Chased(*at.form.m.repeat(m.where(is_done, 0, last - begin), chase, at))


def _reflection(
    m: Nodes, x: Tensor, y: Tensor, z: Tensor
) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
    """``(v2, v3)``, ``tau`` and ``beta`` that turn ``(x, y, z)`` to ``(beta, 0, 0)``: ``larfg``."""
    scale = m.op("Max", m.abs(x), m.abs(y), m.abs(z))
    scale = m.where(scale > 0.0, scale, 1.0)
    x, y, z = x / scale, y / scale, z / scale
    rest = y * y + z * z
    still = m.equal(rest, 0.0)
    length = m.sqrt(x * x + rest)
    beta = m.where(x >= 0.0, -length, length)
    divisor = m.where(still, 1.0, x - beta)
    tau = m.where(still, 0.0, (beta - x) / m.where(still, 1.0, beta))
    return (y / divisor, z / divisor), tau, m.where(still, x, beta) * scale


def _set_off(
    m: Nodes, at: Chased, indexes: Indexes, last: Tensor, is_pair: Tensor, precision: float
) -> Chased:
    """The last two rows of the block in standard form, if it has two."""
    r, c = indexes
    p = m.op("Max", last - 1, 0)
    q = p + 1

    def element(row: Tensor, column: Tensor) -> Tensor:
        return m.op("Gather", m.op("Gather", at.form, row), column)

    block = standard(m, element(p, p), element(p, q), element(q, p), element(q, q), precision)
    cosine, sine = m.where(is_pair, block.cosine, 1.0), m.where(is_pair, block.sine, 0.0)
    turn = p, cosine, sine
    form = _turned(m, _turned(m, at.form, r, *turn, axis=0), c, *turn, axis=1)
    for (row, column), number in zip(((p, p), (p, q), (q, p), (q, q)), block, strict=False):
        form = m.where(m.equal(r, row) & m.equal(c, column) & is_pair, number, form)
    return Chased(form, _turned(m, at.vectors, c, *turn, axis=1))


def _turned(
    m: Nodes, a: Tensor, place: Tensor, p: Tensor, cosine: Tensor, sine: Tensor, axis: int
) -> Tensor:
    """``a`` with its rows, or columns, ``p`` and ``p + 1`` rotated; their indexes are ``place``."""
    x, y = (
        m.op("Unsqueeze", m.op("Gather", a, each, axis=axis), ints(m, axis)) for each in (p, p + 1)
    )
    first = m.where(m.equal(place, p), x * cosine + y * sine, a)
    both: Tensor = m.where(m.equal(place, p + 1), y * cosine - x * sine, first)
    return both
