"""Lane-batched singular values and vectors of many small matrices.

The steps are in the order of LAPACK's ``gesdd``, so signs match. A matrix that is much longer than
wide is made triangular first. Then it is made bidiagonal by reflections, and diagonal by implicit
QR. Wide matrices are transposed, and their lower bidiagonal form is rotated to an upper one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lane_batched import DOMAIN, Vectors
from smelt.native.kernels.lane_batched_text import BYTES, lanes_of
from smelt.program.storage import Needs

SVD, SINGULAR_VALUES = f"{DOMAIN}::SVD", f"{DOMAIN}::SingularValues"
MOST = 25
"""The largest shorter side: ``gesdd`` splits larger matrices, so vectors could have other signs."""
MOST_VALUES = 32
"""The largest shorter side without vectors: the bits of a lane mark block ends, one per row."""
LONGEST = 64
"""The largest longer side: larger matrices exceed the nearest caches."""


def supports(instance: Instance) -> bool:
    """True if this file's kernels support the instruction: a batch of small, nonempty real
    matrices.

    The batch has to fill a vector.
    """
    shape, type_ = instance.shape(0), instance.type(0).name
    if type_ not in ("float", "double") or 0 in shape:
        return False
    most = MOST if instance.instruction.op.endswith("SVD") else MOST_VALUES
    small = min(shape[-2:]) <= most and max(shape[-2:]) <= LONGEST
    return small and math.prod(shape[:-2]) >= lanes_of(type_)


@dataclass(frozen=True)
class _Sizes:
    """The sizes of ``m`` x ``n`` matrices, and whether they are made triangular first."""

    m: int
    n: int

    @property
    def least(self) -> int:
        """The shorter side."""
        return min(self.m, self.n)

    @property
    def most(self) -> int:
        """The longer side."""
        return max(self.m, self.n)

    @property
    def triangular_first(self) -> bool:
        """True if the longer side is so long that matrices are made triangular first."""
        return self.most >= self.least * 11 // 6

    def rooms(self, vectors: bool) -> dict[str, int]:
        """Return the number of vectors of each array in scratch space."""
        square, area = self.least**2, self.m * self.n
        rooms = {"given": area, "transposed": area, "square": square}
        rooms |= dict.fromkeys(("d", "e", "c", "s", "largest", "bound"), self.least)
        rooms |= dict.fromkeys(("longest", "lefts", "rights"), self.least)
        rooms["w"] = self.most
        if vectors:
            rooms |= {"left": square, "right": square, "out": self.most**2}
        return rooms


def _needs(instance: Instance) -> Needs:
    """Return the scratch space of all arrays."""
    vectors = instance.instruction.op == SVD
    rooms = _Sizes(*instance.shape(0)[-2:]).rooms(vectors)
    return Needs(workspace=BYTES * sum(rooms.values()))


@kernel(SINGULAR_VALUES, needs=_needs, shared=True)
def singular_values(cx: KernelContext) -> None:
    """Write the singular values of each matrix; a matrix with non-finite elements gives NaN."""
    sizes, vectors = _Sizes(*cx.shape(0)[-2:]), Vectors(cx)
    for name, count in sizes.rooms(False).items():
        vectors.array(name, count)
    with vectors.loop_over_vectors():
        _emit_bidiagonal(cx, sizes, vectors)
        _emit_steps(cx, sizes, vectors, with_vectors=False)
        with cx.body.loop("l", vectors.lanes):
            _emit_values(cx, sizes, vectors, cx.output().name)


@kernel(SVD, needs=_needs, shared=True)
def svd(cx: KernelContext) -> None:
    """Write singular values and vectors of each matrix; a matrix with non-finite elements gives
    NaN.
    """
    sizes, vectors, c_type = _Sizes(*cx.shape(0)[-2:]), Vectors(cx), cx.type(0).name
    for name, count in sizes.rooms(True).items():
        vectors.array(name, count)
    lanes, least = vectors.lanes, sizes.least
    left, right = cx.output_shape(1)[-1], cx.output_shape(2)[-2]
    with vectors.loop_over_vectors():
        body = cx.body
        _emit_bidiagonal(cx, sizes, vectors)
        with body.loops(("i", "j"), (least, least)):
            body.line(f"left[i * {least} + j] = ({vectors.vector_type}){{0}} + ({c_type})(i == j);")
            body.line(f"right[i * {least} + j] = left[i * {least} + j];")
        _emit_steps(cx, sizes, vectors, with_vectors=True)
        body.line(f"ptrdiff_t orders[{lanes}][{least}];")
        with body.loop("l", lanes):
            body.line("ptrdiff_t *const order = orders[l];")
            _emit_values(cx, sizes, vectors, cx.output(0).name)
        _emit_vectors(cx, sizes, vectors, sizes.m, left, is_left=True)
        _emit_vectors(cx, sizes, vectors, sizes.n, right, is_left=False)


def _emit_bidiagonal(cx: KernelContext, sizes: _Sizes, vectors: Vectors) -> None:
    """Write the reduction to the upper bidiagonal matrix ``d`` and ``e``.

    The reflections stay in ``whole`` and ``reduced``.
    """
    body, c_type, (m, n), least = cx.body, cx.type(0).name, (sizes.m, sizes.n), sizes.least
    body.line(f"{vectors.vector_type} back;")
    body.line(f"int skip[{vectors.lanes}];")
    vectors.call("together", f"{cx.input(0).name} + b * {m * n}", "given", m * n)
    vectors.call("near", "given", m * n, "&back", "skip")
    body.line(f"{vectors.vector_type} *const whole = {'transposed' if m < n else 'given'};")
    if m < n:
        with body.loops(("j", "i"), (n, m)):
            body.line(f"transposed[j * {m} + i] = given[i * {n} + j];")
    body.line(f"{vectors.vector_type} *reduced = whole;")
    rows = sizes.most
    if sizes.triangular_first:
        vectors.call("reflections_to", "whole", f"({c_type} *)longest", "w", rows, least)
        with body.loops(("i", "j"), (least, least)):
            above = "whole[j * {0} + i]" if m < n else "whole[i * {0} + j]"
            order = "j <= i" if m < n else "j >= i"
            body.line(f"square[i * {least} + j] = {order} ? {above.format(least)}")
            body.line(f"    : ({vectors.vector_type}){{0}};")
        body.line("reduced = square;")
        rows = least
    taus = f"({c_type} *)lefts", f"({c_type} *)rights"
    vectors.call("bidiagonal", "reduced", "d", "e", *taus, "w", rows, least)
    if m < n and not sizes.triangular_first:
        vectors.call("raise", "d", "e", "c", "s", least)


def _emit_steps(cx: KernelContext, sizes: _Sizes, vectors: Vectors, *, with_vectors: bool) -> None:
    """Write the call of the implicit QR."""
    arrays = "left, right" if with_vectors else "d, d"
    arguments = (
        f"d, e, {arrays}, largest, bound, {sizes.least}, skip, &swapped, {int(with_vectors)}"
    )
    function = vectors.define("bidiagonal_qr")
    cx.body.line(f"mask_{cx.type(0).name} swapped;")
    cx.body.line(f"const int failed = {function}({arguments});")
    cx.fail_if("failed")


def _emit_values(cx: KernelContext, sizes: _Sizes, vectors: Vectors, name: str) -> None:
    """Write the sorted singular values of matrix ``b + l``, and their former
    indices to ``order``."""
    body, c_type, least = cx.body, cx.type(0).name, sizes.least
    if cx.instruction.op == SINGULAR_VALUES:
        body.line(f"ptrdiff_t order[{least}];")
    body.line(f"{c_type} *const values = {name} + (b + l) * {least};")
    body.line(f"const {c_type} by = skip[l] ? NAN : (({c_type} *)&back)[l];")
    body.line(f"{vectors.define('sort')}(({c_type} *)d + l, values, order, {least}, by);")


def _emit_vectors(
    cx: KernelContext, sizes: _Sizes, vectors: Vectors, rows: int, columns: int, *, is_left: bool
) -> None:
    """Write the left or right vectors: the product of the reflections and the vectors of the QR.

    Right vectors are stored as rows. The C functions: ``embed`` copies the vectors of the QR into
    ``out``, ``lower`` undoes the rotation to an upper bidiagonal form, and ``return`` applies
    reflections to ``out``.
    """
    body, c_type, least, lanes = cx.body, cx.type(0).name, sizes.least, vectors.lanes
    is_reduced_as_tall = sizes.m >= sizes.n or sizes.triangular_first
    reflects_columns = is_left == is_reduced_as_tall  # those that clear columns come first
    is_long = is_left == (sizes.m >= sizes.n)
    side, other_side = ("left", "right") if is_left else ("right", "left")
    vectors.call("embed", side, other_side, "swapped", "out", least, rows, columns)
    if is_left and sizes.m < sizes.n and not sizes.triangular_first:
        vectors.call("lower", "out", "c", "s", least)
    height = least if sizes.triangular_first else rows
    if reflects_columns:
        taus = f"({c_type} *)lefts"
        vectors.call("return", "reduced", least, least, taus, least, "out", "w", height, columns)
    else:
        start, taus = f"out + {columns}", f"({c_type} *)rights"
        vectors.call(
            "return", "reduced + 1", 1, least, taus, least - 1, start, "w", least - 1, columns
        )
    if is_long and sizes.triangular_first:
        taus = f"({c_type} *)longest"
        vectors.call("return", "whole", least, least, taus, least, "out", "w", rows, columns)
    result = cx.output(1 if is_left else 2).name
    with body.loop("l", lanes):
        body.line(f"{c_type} *const y = {result} + (b + l) * {rows * columns};")
        with body.loop("j", columns):
            body.line(f"const ptrdiff_t from = j < {least} ? orders[l][j] : j;")
            body.line(f"{c_type} sign = skip[l] ? NAN : 1;")
            # LAPACK's bdsdc negates right vectors of negative values, or the left one of a 1 x 1.
            if is_left == (least == 1):
                body.line(f"if (j < {least} && (({c_type} *)d)[from * {lanes} + l] < 0)")
                body.line("    sign = -sign;")
            with body.loop("i", rows):
                to = f"i * {columns} + j" if is_left else f"j * {rows} + i"
                body.line(
                    f"y[{to}] = sign * (({c_type} *)out)[(i * {columns} + from) * {lanes} + l];"
                )
