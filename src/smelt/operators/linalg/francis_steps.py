"""Double-shift QR steps, which bring a Hessenberg form to the real Schur form.

After LAPACK's ``dlahqr``, so that eigenvalues come in its order: J. G. F. Francis, "The QR
transformation", 1961 and 1962; deflation after M. Ahues and F. Tisseur, LAPACK Working Note 122.

Matrices are ``[batch, n + 1, n + 1]``, with last row and column zero: no reduction is empty.
A number per matrix is ``[batch, 1, 1]``. Each matrix has its own active block; all step together.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.deflation import LEAST, has_small_products
from smelt.operators.linalg.francis_values import (
    Bands,
    Block,
    Decomposed,
    Indexes,
    Shifts,
    bands,
    from_next,
    from_previous,
)
from smelt.operators.linalg.matrices import (
    column,
    index_grid,
    ints,
    largest,
    product,
    row,
    transposed,
)
from smelt.operators.linalg.standard_blocks import standard

STEPS = 30
"""A matrix fails after ``STEPS * max(n, 10)`` iterations without a finished block."""

UNUSUAL = 10
"""After this many steps without an eigenvalue, exceptional shifts are used."""


def real_schur(
    m: Nodes, form: Tensor, vectors: Tensor, count: Tensor, precision: float
) -> tuple[Decomposed, Tensor]:
    """Build the Schur form of Hessenberg forms, its vectors, and a mask of matrices that failed.

    ``count``, n, is a rank-0 int64. Subdiagonal elements below ``precision`` times their neighbors
    are negligible. Each iteration runs one step on the last block of each unfinished matrix, or
    finishes a block: one row, or two rows in standard form.
    """
    limit = m.op("Max", count, 10) * STEPS
    indexes = r, c = index_grid(m, form)

    def is_unfinished(last: Tensor, stuck: Tensor, *_: Tensor) -> Tensor:
        """True for a matrix that has unfinished rows and has not failed."""
        return (last >= 0) & (stuck <= limit)

    def iterate(last: Tensor, stuck: Tensor, form: Tensor, vectors: Tensor) -> tuple[Tensor, ...]:
        """Run one step on the block that ends at row ``last``, or finish a block of one or two
        rows.

        ``stuck`` counts the iterations since the last finished block.
        """
        is_active = is_unfinished(last, stuck)
        b = bands(m, form, indexes)
        first = _first_of_block(m, b, last, c, precision)
        form = m.where(m.equal(r, first) & m.equal(c, first - 1) & is_active, 0.0, form)
        is_done = first >= last - 1
        stuck = stuck + 1
        block = Block(first, last, is_active & ~is_done)
        decomposed = _step(m, Decomposed(form, vectors), b, indexes, block, stuck, precision)
        is_pair = is_active & m.equal(first, last - 1)
        decomposed = _standardize_pair(m, decomposed, b, indexes, last, is_pair, precision)
        stuck = m.where(is_done, stuck * 0, stuck)
        return m.where(is_active & is_done, first - 1, last), stuck, *decomposed

    zero = m.op("Cast", largest(m, form) * 0.0, to=int(ir.DataType.INT64))  # one per matrix
    start = zero + count - 1, zero, form, vectors
    last, _, form, vectors = form.m.loop(is_unfinished, iterate, start)
    return Decomposed(m.where(r <= c + 1, form, 0.0), vectors), last >= 0


def _first_of_block(m: Nodes, b: Bands, last: Tensor, c: Tensor, precision: float) -> Tensor:
    """Return the first row of the block that ends with row ``last``.

    It is the last row at or above ``last`` whose element left of the diagonal is negligible, as in
    ``dlahqr``: it is at most ``LEAST``, or it is small relative to both diagonal elements and
    ``has_small_products``. Beside two zeros, it is compared with the next elements left of the
    diagonal. In a row, ``previous`` is the diagonal element of the row above.
    """
    left_size, diagonal = m.abs(b.left), b.diagonal
    previous = from_previous(m, diagonal)
    neighbors = m.abs(previous) + m.abs(diagonal)
    side_neighbors = from_previous(m, left_size) + from_next(m, left_size)
    neighbors = m.where(m.equal(neighbors, 0.0), side_neighbors, neighbors)
    size, difference = m.abs(diagonal), m.abs(previous - diagonal)
    has_small = has_small_products(m, left_size, m.abs(b.above), size, difference, precision)
    is_negligible = (left_size <= neighbors * precision) & has_small
    begins = ((left_size <= LEAST) | is_negligible) & (c <= last)
    return m.op("ReduceMax", m.where(begins, c, 0), ints(m, -1), keepdims=1)


def _at_column(m: Nodes, numbers: Tensor, place: Tensor, c: Tensor) -> Tensor:
    """Return the number of each row at column ``place``; 0 if ``place`` is outside."""
    return m.op("ReduceSum", m.where(m.equal(c, place), numbers, 0.0), ints(m, -1), keepdims=1)


def _shifts(m: Nodes, b: Bands, block: Block, stuck: Tensor, c: Tensor) -> Shifts:
    """Return the shifts of a step: the eigenvalues of the last two rows of the block.

    Every ``UNUSUAL`` steps without an eigenvalue, a shift from the subdiagonal elements at the top
    or at the bottom of the block, by turns, as in ``dlahqr``.
    """
    first, last = block.first, block.last
    d, side = _at_column(m, b.diagonal, last, c), _at_column(m, b.left, last, c)
    usual = _at_column(m, b.diagonal, last - 1, c), _at_column(m, b.above, last, c), side, d
    low = m.abs(side) + m.abs(_at_column(m, b.left, last - 1, c))
    top = m.abs(_at_column(m, b.left, first + 1, c)) + m.abs(_at_column(m, b.left, first + 2, c))

    def exceptional(size: Tensor, corner: Tensor) -> tuple[Tensor, ...]:
        """Return the exceptional block from the sum ``size`` of two elements, as LAPACK does."""
        x = 0.75 * size + corner
        return x, -0.4375 * size, size, x

    from_top = m.equal(m.op("Mod", stuck, UNUSUAL), 0)
    from_below = m.equal(m.op("Mod", stuck, 2 * UNUSUAL), 0)
    matrix = usual
    for mask, exceptional_block in (
        (from_top, exceptional(top, _at_column(m, b.diagonal, first, c))),
        (from_below, exceptional(low, d)),
    ):
        matrix = tuple(m.where(mask, x, y) for x, y in zip(exceptional_block, matrix, strict=True))
    return _eigenvalues(m, *matrix)


def _eigenvalues(m: Nodes, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Shifts:
    """Return the eigenvalues of ``[[a, b], [c, d]]`` as shifts.

    These are a conjugate pair, or twice the real eigenvalue closer to ``d``.
    """
    size = m.abs(a) + m.abs(b) + m.abs(c) + m.abs(d)
    scale = m.where(size > 0.0, size, 1.0)
    a, b, c, d = (x / scale for x in (a, b, c, d))
    middle = (a + d) * 0.5
    minor = (a - middle) * (d - middle) - b * c
    root = m.sqrt(m.abs(minor))
    larger, smaller = middle + root, middle - root
    real = m.where(m.abs(larger - d) <= m.abs(smaller - d), larger, smaller)
    x = m.where(minor >= 0.0, middle, real) * scale
    return Shifts(x, m.where(minor >= 0.0, root, 0.0) * scale)


def _start(
    m: Nodes, b: Bands, s: Shifts, block: Block, c: Tensor, precision: float
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the row at which a step begins, and the vector reflected there.

    The row is the last one below two consecutive small elements, or the first of the block. The
    vector is the first column of ``(H - s) (H - conj(s))``, for the block H from that row and the
    shifts s.
    """
    d, below = b.diagonal, from_next(m, b.left)
    after = from_next(m, d)
    size = m.abs(d - s.x) + m.abs(s.y) + m.abs(below)
    size = m.where(size > 0.0, size, 1.0)
    scaled_below = below / size
    x = scaled_below * from_next(m, b.above) + (d - s.x) * ((d - s.x) / size) + s.y * (s.y / size)
    y = scaled_below * (d + after - s.x - s.x)
    z = scaled_below * from_next(m, below)
    total = m.abs(x) + m.abs(y) + m.abs(z)
    total = m.where(total > 0.0, total, 1.0)
    x, y, z = x / total, y / total, z / total
    around = m.abs(from_previous(m, d)) + m.abs(d) + m.abs(after)
    is_small = m.abs(b.left) * (m.abs(y) + m.abs(z)) <= precision * m.abs(x) * around
    allowed = is_small & (c > block.first) & (c <= block.last - 2)
    last_small = m.op("ReduceMax", m.where(allowed, c, 0), ints(m, -1), keepdims=1)
    begin = m.op("Max", block.first, last_small)
    return begin, tuple(_at_column(m, number, begin, c) for number in (x, y, z))


def _step(
    m: Nodes,
    decomposed: Decomposed,
    b: Bands,
    indexes: Indexes,
    block: Block,
    stuck: Tensor,
    precision: float,
) -> Decomposed:
    """Run one double-shift step on each block: a bulge moves down from its first row.

    1. ``_shifts`` gives the shifts, ``_start`` the first row and the vector to reflect there.
    2. In each row k, reflect rows k to k + 2 of the form from both sides. The reflected vector is
       that of ``_start`` in the first row, later the column left of k, whose elements below row k
       become 0.
    3. Apply the reflection to the vectors from the right.

    Blocks of other rows are unchanged, because their ``factor`` is 0.
    """
    r, c = indexes
    shifts = _shifts(m, b, block, stuck, c)
    begin, start_vector = _start(m, b, shifts, block, c, precision)
    first_row = m.op("ReduceMin", m.where(block.steps, begin, block.last + 1), keepdims=0)
    last_row = m.op("ReduceMax", m.where(block.steps, block.last, 0), keepdims=0)

    def chase(i: Tensor, form: Tensor, vectors: Tensor) -> tuple[Tensor, ...]:
        """Move the bulge of each block down by one row."""
        k = first_row + i
        moves = block.steps & (k >= begin) & (k < block.last)
        starts = m.equal(begin, k)
        left_column = column(m, form, m.op("Max", k - 1, 0))
        column_elements = (row(m, left_column, k + j) for j in range(3))
        x, y, z = (
            m.where(starts, u, v) for u, v in zip(start_vector, column_elements, strict=True)
        )
        z = m.where(k + 2 <= block.last, z, 0.0)
        tail, tau, beta = _reflection(m, x, y, z)
        factor = m.where(moves, tau, 0.0)
        v = m.where(m.equal(r, k), 1.0, 0.0)
        for j, number in enumerate(tail, 1):
            v = m.where(m.equal(r, k + j), number, v)
        v_row = transposed(m, v)
        form = form - factor * v * product(m, v_row, form)
        form = form - product(m, form, v) * (factor * v_row)
        vectors = vectors - product(m, vectors, v) * (factor * v_row)
        in_column = m.equal(c, k - 1) & moves
        form = m.where(in_column & (r > k) & (r <= k + 2), 0.0, form)
        return m.where(in_column & m.equal(r, k) & ~starts, beta, form), vectors

    moves_down = m.op("Max", last_row - first_row, 0)
    return Decomposed(*decomposed.form.m.repeat(moves_down, chase, decomposed))


def _reflection(
    m: Nodes, x: Tensor, y: Tensor, z: Tensor
) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
    """Return ``(v2, v3)``, ``tau`` and ``beta`` of a reflection, as LAPACK's ``larfg``.

    ``1 - tau v v^T`` with ``v = (1, v2, v3)`` maps ``(x, y, z)`` to ``(beta, 0, 0)``.
    """
    scale = m.op("Max", m.abs(x), m.abs(y), m.abs(z))
    scale = m.where(scale > 0.0, scale, 1.0)
    x, y, z = x / scale, y / scale, z / scale
    tail_squares = y * y + z * z
    is_trivial = m.equal(tail_squares, 0.0)
    length = m.sqrt(x * x + tail_squares)
    beta = m.where(x >= 0.0, -length, length)
    divisor = m.where(is_trivial, 1.0, x - beta)
    tau = m.where(is_trivial, 0.0, (beta - x) / m.where(is_trivial, 1.0, beta))
    return (y / divisor, z / divisor), tau, m.where(is_trivial, x, beta) * scale


def _standardize_pair(
    m: Nodes,
    decomposed: Decomposed,
    b: Bands,
    indexes: Indexes,
    last: Tensor,
    is_pair: Tensor,
    precision: float,
) -> Decomposed:
    """Bring the last two rows of each block that ``is_pair`` to standard form."""
    r, c = indexes
    first = last - 1
    corners = _at_column(m, b.diagonal, first, c), _at_column(m, b.diagonal, last, c)
    off_diagonal = _at_column(m, b.above, last, c), _at_column(m, b.left, last, c)
    block = standard(m, corners[0], *off_diagonal, corners[1], precision)
    rotation = first, is_pair, block.cosine, block.sine
    form = _rotated(m, _rotated(m, decomposed.form, r, *rotation, axis=-2), c, *rotation, axis=-1)
    positions = (first, first), (first, last), (last, first), (last, last)
    for (i, j), number in zip(positions, block, strict=False):
        form = m.where(m.equal(r, i) & m.equal(c, j) & is_pair, number, form)
    return Decomposed(form, _rotated(m, decomposed.vectors, c, *rotation, axis=-1))


def _rotated(
    m: Nodes,
    a: Tensor,
    place: Tensor,
    p: Tensor,
    mask: Tensor,
    cosine: Tensor,
    sine: Tensor,
    axis: int,
) -> Tensor:
    """Return ``a`` with rows (or columns) ``p`` and ``p + 1`` rotated where ``mask`` is true.

    ``place`` are the indices along the rotated axis; ``axis`` is -2 for rows, -1 for columns.
    """
    is_first, is_second = m.equal(place, p) & mask, m.equal(place, p + 1) & mask
    x, y = (
        m.op("ReduceSum", m.where(line, a, 0.0), ints(m, axis), keepdims=1)
        for line in (is_first, is_second)
    )
    first = m.where(is_first, x * cosine + y * sine, a)
    rotated: Tensor = m.where(is_second, y * cosine - x * sine, first)
    return rotated
