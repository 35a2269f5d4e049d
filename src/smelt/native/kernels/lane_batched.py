"""Lane-batched kernels for factors and systems of many small matrices: one matrix per vector lane.

A vector contains element (i, j) of several matrices, one per lane, so each scalar operation of the
algorithm becomes a vector operation. A LAPACK call per matrix would take longer than the
computation of matrices up to 16 x 16. Signs and pivots are those of LAPACK.

If the batch is no multiple of the lanes, its last vector overlaps the previous one.

Vector types are extensions of GCC and Clang, so only programs for this process use these kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lane_batched_text import BYTES, TEXTS, filled, lanes_of
from smelt.program.storage import Needs

DOMAIN = "smelt.native.lane_batched"
MOST = 32
"""The most rows and columns: vectors of larger matrices exceed the first-level cache."""

TAKEN = {
    "Cholesky": 1,
    "LU": 1,
    "ComplexLU": 2,
    "ComplexCholesky": 2,
    "TriangularSolve": 2,
    "ComplexTriangularSolve": 4,
    "Geqrf": 1,
    "HouseholderProduct": 2,
}
"""The lane-batched operators and their number of operands."""


def supports(instance: Instance, name: str) -> bool:
    """True if this file's kernels support the instruction: a batch of small, nonempty matrices.

    The batch has to fill a vector. Complex matrices are given by their parts.
    """
    operands = [(instance.shape(i), instance.type(i).name) for i in range(TAKEN[name])]
    if any(type_ not in ("float", "double") or 0 in shape for shape, type_ in operands):
        return False
    if name == "HouseholderProduct" and operands[0][0][-1] > operands[0][0][-2]:
        return False
    (first_shape, type_), (last_shape, _) = operands[0], operands[-1]
    is_small = (
        max(*first_shape[-2:], *last_shape[-2 if name.endswith("TriangularSolve") else -1 :])
        <= MOST
    )
    return is_small and math.prod(first_shape[:-2]) >= lanes_of(type_)


def _needs(instance: Instance) -> Needs:
    """Return the scratch space: vectors for the first operand, the result and one row.

    Complex operands and results are two parts each.
    """
    shapes = (instance.shape(0), instance.output_shape())
    parts = 2 if instance.instruction.op.endswith("ComplexTriangularSolve") else 1
    return Needs(workspace=BYTES * (parts * sum(math.prod(shape[-2:]) for shape in shapes) + MOST))


class Vectors:
    """Writes the C of one vector of matrices; its arrays are in scratch space.

    ``vector_type`` is the C type of a vector. The C function ``together`` interleaves matrices into
    vectors, one matrix per lane; ``apart`` does the reverse.
    """

    def __init__(self, cx: KernelContext) -> None:
        """Declare the vector type, and ``room``, a pointer to the scratch space still free."""
        self.cx, self.type = cx, cx.type(0).name
        self.lanes = lanes_of(self.type)
        self.vector_type = self.define("lanes")
        cx.body.line(f"{self.vector_type} *room = ({self.vector_type} *){cx.scratch(cx.type(0))};")

    def define(self, name: str) -> str:
        """Define the C function or type ``name`` for this element type, and all that it uses.

        Returns its C name.
        """
        for needed, text in TEXTS[name]:
            self.cx.call(filled(needed, self.type), filled(text, self.type))
        return f"{name}_{self.type}"

    def array(self, name: str, count: int) -> str:
        """Declare ``name``, a pointer to ``count`` vectors of scratch space, and return it."""
        self.cx.body.line(f"{self.vector_type} *const {name} = room;")
        self.cx.body.line(f"room += {count};")
        return name

    def call(self, name: str, *arguments: str | int) -> None:
        """Write the call of the function ``name`` for this element type."""
        self.cx.body.line(f"{self.define(name)}({', '.join(map(str, arguments))});")

    @contextmanager
    def loop_over_vectors(self) -> Iterator[None]:
        """Write a loop over vectors of matrices; ``b`` is the first matrix of a vector.

        Shards compute ranges of vectors, unless two vectors contain the same matrix.
        """
        count, body = math.prod(self.cx.shape(0)[:-2]), self.cx.body
        loop = body.loop if count % self.lanes else body.shared_loop
        with loop("first", count, step=self.lanes):
            last = count - self.lanes
            body.line(f"const ptrdiff_t b = first < {last} ? first : {last};")
            yield


@kernel(f"{DOMAIN}::Cholesky", needs=_needs, shared=True)
def cholesky(cx: KernelContext) -> None:
    """Write Cholesky factors, column by column; a pivot that is not positive makes the triangle
    NaN.

    ```
    together_float(x0 + b * 16, a, 16);
    cholesky_float(a, 4, 4, 1);
    apart_float(a, y0 + b * 16, 16);
    ```
    """
    order, lower, vectors = cx.shape(0)[-1], bool(cx.int("lower")), Vectors(cx)
    a = vectors.array("a", order * order)
    steps = (order, 1) if lower else (1, order)
    with vectors.loop_over_vectors():
        vectors.call("together", f"{cx.input(0).name} + b * {order * order}", a, order * order)
        vectors.call("cholesky", a, order, *steps)
        vectors.call("apart", a, f"{cx.output().name} + b * {order * order}", order * order)


@kernel(f"{DOMAIN}::LU", needs=_needs, shared=True)
def lu(cx: KernelContext) -> None:
    """Write LU factors, column by column; each lane swaps its own rows."""
    (rows, columns), vectors = cx.shape(0)[-2:], Vectors(cx)
    a = vectors.array("a", rows * columns)
    with vectors.loop_over_vectors():
        pivots = f"{cx.output(1).name} + b * {min(rows, columns)}"
        order = f"{cx.output(2).name} + b * {rows}"
        vectors.call("together", f"{cx.input(0).name} + b * {rows * columns}", a, rows * columns)
        vectors.call("lu", a, pivots, order, rows, columns)
        vectors.call("apart", a, f"{cx.output().name} + b * {rows * columns}", rows * columns)


@kernel(f"{DOMAIN}::ComplexCholesky", needs=_needs, shared=True)
def complex_cholesky(cx: KernelContext) -> None:
    """Write Cholesky factors of Hermitian matrices; imaginary parts of the diagonal are not read.

    ```
    together_float(x0 + b * 16, re, 16);
    together_float(x1 + b * 16, im, 16);
    complex_cholesky_float(re, im, 4);
    apart_float(re, y0 + b * 16, 16);
    apart_float(im, y1 + b * 16, 16);
    ```
    """
    order, vectors = cx.shape(0)[-1], Vectors(cx)
    parts = [vectors.array(name, order * order) for name in ("re", "im")]
    with vectors.loop_over_vectors():
        for i, part in enumerate(parts):
            vectors.call(
                "together", f"{cx.input(i).name} + b * {order * order}", part, order * order
            )
        vectors.call("complex_cholesky", *parts, order)
        for i, part in enumerate(parts):
            vectors.call("apart", part, f"{cx.output(i).name} + b * {order * order}", order * order)


@kernel(f"{DOMAIN}::ComplexLU", needs=_needs, shared=True)
def complex_lu(cx: KernelContext) -> None:
    """Write LU factors of complex matrices, as ``lu`` does."""
    (rows, columns), vectors = cx.shape(0)[-2:], Vectors(cx)
    parts = [vectors.array(name, rows * columns) for name in ("re", "im")]
    with vectors.loop_over_vectors():
        pivots = f"{cx.output(2).name} + b * {min(rows, columns)}"
        order = f"{cx.output(3).name} + b * {rows}"
        for i, part in enumerate(parts):
            vectors.call(
                "together", f"{cx.input(i).name} + b * {rows * columns}", part, rows * columns
            )
        vectors.call("complex_lu", *parts, pivots, order, rows, columns)
        for i, part in enumerate(parts):
            vectors.call(
                "apart", part, f"{cx.output(i).name} + b * {rows * columns}", rows * columns
            )


@kernel(f"{DOMAIN}::TriangularSolve", needs=_needs, shared=True)
def triangular_solve(cx: KernelContext) -> None:
    """Write solutions of real triangular systems."""
    _solve(cx, "substitute", 1)


@kernel(f"{DOMAIN}::ComplexTriangularSolve", needs=_needs, shared=True)
def complex_triangular_solve(cx: KernelContext) -> None:
    """Write solutions of complex triangular systems."""
    _solve(cx, "complex_substitute", 2)


def _solve(cx: KernelContext, function: str, parts: int) -> None:
    """Write solutions by substitution, with the C function ``function``.

    A system from the right is solved as a system from the left with both matrices transposed.
    """
    order, (rows, columns), left = (
        cx.shape(0)[-1],
        cx.output().shape[-2:],
        bool(cx.int("left_side")),
    )
    # x @ a = b is solved as a^T @ x^T = b^T, and the transpose of a lower triangle is upper.
    transposed = bool(cx.int("transpose_a")) == left
    lower = bool(cx.int("lower")) != transposed
    vectors = Vectors(cx)
    counts = [order * order] * parts + [rows * columns] * parts
    names = ("a", "x") if parts == 1 else ("re", "im", "along", "across")
    arrays = [vectors.array(*each) for each in zip(names, counts, strict=True)]
    strides_of_a = (1, order) if transposed else (order, 1)
    strides_of_x = (columns, 1) if left else (1, columns)
    flags = int(lower), cx.int("unit_diagonal")
    with vectors.loop_over_vectors():
        for i, (part, count) in enumerate(zip(arrays, counts, strict=True)):
            vectors.call("together", f"{cx.input(i).name} + b * {count}", part, count)
        if parts == 2 and cx.int("conjugate_a"):
            with cx.body.loop("i", order * order):
                cx.body.line(f"{arrays[1]}[i] = -{arrays[1]}[i];")
        vectors.call(
            function,
            *arrays,
            order,
            columns if left else rows,
            *strides_of_a,
            *strides_of_x,
            *flags,
        )
        for i, part in enumerate(arrays[parts:]):
            result = f"{cx.output(i).name} + b * {rows * columns}"
            vectors.call("apart", part, result, rows * columns)


@kernel(f"{DOMAIN}::Geqrf", needs=_needs, shared=True)
def geqrf(cx: KernelContext) -> None:
    """Write Householder reflections, packed as LAPACK packs them."""
    (rows, columns), vectors = cx.shape(0)[-2:], Vectors(cx)
    a, w = vectors.array("a", rows * columns), vectors.array("w", columns)
    count = min(rows, columns)
    with vectors.loop_over_vectors():
        vectors.call("together", f"{cx.input(0).name} + b * {rows * columns}", a, rows * columns)
        vectors.call("reflections", a, f"{cx.output(1).name} + b * {count}", w, rows, columns)
        vectors.call("apart", a, f"{cx.output().name} + b * {rows * columns}", rows * columns)


@kernel(f"{DOMAIN}::HouseholderProduct", needs=_needs, shared=True)
def householder_product(cx: KernelContext) -> None:
    """Write the product of Householder reflections, from the last one to the first.

    ```
    together_float(x0 + b * 16, a, 16);
    multiply_float(a, x1 + b * 4, q, w, 4, 4, 4);
    apart_float(q, y + b * 16, 16);
    ```
    """
    (rows, columns), count, vectors = cx.shape(0)[-2:], cx.shape(1)[-1], Vectors(cx)
    a, q, w = (
        vectors.array(name, c)
        for name, c in (("a", rows * columns), ("q", rows * columns), ("w", columns))
    )
    with vectors.loop_over_vectors():
        vectors.call("together", f"{cx.input(0).name} + b * {rows * columns}", a, rows * columns)
        taus = f"{cx.input(1).name} + b * {count}"
        vectors.call("multiply", a, taus, q, w, rows, columns, count)
        vectors.call("apart", q, f"{cx.output().name} + b * {rows * columns}", rows * columns)
