"""Lane-batched eigenvectors of many small symmetric and Hermitian matrices.

Reflections make the matrices tridiagonal, then the QL iterations of LAPACK's ``steqr`` make them
diagonal. ``syevd`` calls ``steqr`` for matrices this small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lane_batched import DOMAIN, Vectors
from smelt.native.kernels.lane_batched_text import BYTES, lanes_of
from smelt.program.storage import Needs

EIGH, COMPLEX_EIGH = f"{DOMAIN}::Eigh", f"{DOMAIN}::ComplexEigh"
MOST = 25
"""The largest matrix, in rows: ``syevd`` splits larger ones, and vectors could have other signs."""


def supports(instance: Instance) -> bool:
    """True if this file's kernels support the instruction: matrices of 2 to ``MOST`` rows.

    There are enough of them to fill a vector, and their lower triangle is given.
    """
    shape, type_ = instance.shape(0), instance.type(0).name
    if type_ not in ("float", "double") or not instance.attributes["lower"]:
        return False
    return 2 <= shape[-1] <= MOST and math.prod(shape[:-2]) >= lanes_of(type_)


def supports_parts(instance: Instance) -> bool:
    """True if this file's kernels support the complex instruction: two parts of equal shape."""
    return supports(instance) and instance.shape(0) == instance.shape(1)


def _needs(instance: Instance) -> Needs:
    """Return the scratch space: three lane-batched matrices and four rows."""
    order = instance.shape(0)[-1]
    return Needs(workspace=BYTES * (3 * order * order + 4 * order))


@kernel(EIGH, needs=_needs, shared=True)
def eigh(cx: KernelContext) -> None:
    """Write eigenvalues and eigenvectors of symmetric matrices; non-finite elements give NaN.

    Each group of matrices is interleaved and scaled, made tridiagonal, diagonalized by ``ql``, and
    stored sorted. In C, ``a`` are the matrices, ``d`` and ``e`` the diagonals of the tridiagonal
    ones, ``q`` the product of the reflections, and ``z`` the vectors. ``back`` undoes the scaling;
    ``skip`` marks matrices with non-finite elements.
    """
    order, body, c_type, vectors = cx.shape(0)[-1], cx.body, cx.type(0).name, Vectors(cx)
    rest, lanes = order - 1, vectors.lanes  # reflections leave row and column 0 unchanged
    arrays = (
        ("a", order * order),
        ("q", order * order),
        ("z", order * order),
        ("w", order),
        ("d", order),
        ("e", order),
        ("tau", order),
    )
    for name, count in arrays:
        vectors.array(name, count)
    body.line(f"{c_type} *const taus = ({c_type} *)tau;")
    with vectors.loop_over_vectors():
        vectors.call("together", f"{cx.input(0).name} + b * {order * order}", "a", order * order)
        body.line(f"{vectors.vector_type} back;")
        body.line(f"int skip[{lanes}];")
        with body.loop("i", order), body.loop("j", "i"):
            body.line(f"a[j * {order} + i] = a[i * {order} + j];")
        vectors.call("near", "a", order * order, "&back", "skip")
        vectors.call("tridiagonal", "a", "taus", "w", order)
        with body.loops(("i", "j"), (rest, rest)):
            body.line(f"z[i * {rest} + j] = a[(i + 1) * {order} + j];")
        vectors.call("multiply", "z", "taus", "q", "w", rest, rest, rest)
        with body.loop("i", order):
            body.line(f"d[i] = a[i * {order + 1}];")
            body.line(
                f"e[i] = i < {rest} ? a[i * {order + 1} + {order}] : ({vectors.vector_type}){{0}};"
            )
        with body.loops(("j", "i"), (order, order)):
            body.line(f"z[j * {order} + i] = ({vectors.vector_type}){{0}} + ({c_type})(i == j);")
            body.line("if (i && j)")
            body.line(f"    z[j * {order} + i] = q[(i - 1) * {rest} + j - 1];")
        body.line(f"const int failed = {vectors.define('ql')}(d, e, z, {order}, skip);")
        cx.fail_if("failed")
        with body.loop("l", lanes):
            _emit_sorted(cx, order, lanes, ("z",))


def _needs_of_parts(instance: Instance) -> Needs:
    """Return the scratch space: four lane-batched matrices and six rows."""
    order = instance.shape(0)[-1]
    return Needs(workspace=BYTES * (4 * order * order + 6 * order))


@kernel(COMPLEX_EIGH, needs=_needs_of_parts, shared=True)
def complex_eigh(cx: KernelContext) -> None:
    """Write eigenvalues and eigenvectors of Hermitian matrices.

    Complex reflections reduce them to real tridiagonal matrices, as ``heevd`` does. The rest is the
    algorithm for real matrices. In C, ``a`` and ``c`` are the real and imaginary parts of the
    matrices, ``z`` and ``s`` those of the vectors, ``d`` and ``e`` the diagonals, ``f`` and ``g``
    the parts of the reflections' scales, and ``p`` and ``q`` rows for ``hermitian``.
    """
    order, body, c_type, vectors = cx.shape(0)[-1], cx.body, cx.type(0).name, Vectors(cx)
    for name, count in (*((x, order * order) for x in "acsz"), *((x, order) for x in "depqfg")):
        vectors.array(name, count)
    word, lanes = vectors.vector_type, vectors.lanes
    with vectors.loop_over_vectors():
        for i, part in enumerate("ac"):
            vectors.call(
                "together", f"{cx.input(i).name} + b * {order * order}", part, order * order
            )
        body.line(f"{word} back;")
        body.line(f"int skip[{lanes}];")
        with body.loop("i", order):
            body.line(f"c[i * {order + 1}] = ({word}){{0}};")
            with body.loop("j", "i"):
                body.line(f"a[j * {order} + i] = a[i * {order} + j];")
                body.line(f"c[j * {order} + i] = -c[i * {order} + j];")
        vectors.call("near", "a", 2 * order * order, "&back", "skip")
        vectors.call("hermitian", "a", "c", "d", "e", "f", "g", "p", "q", order)
        with body.loops(("j", "i"), (order, order)):
            body.line(f"z[j * {order} + i] = ({word}){{0}} + ({c_type})(i == j);")
            body.line(f"s[j * {order} + i] = ({word}){{0}};")
        body.line(f"const int failed = {vectors.define('ql')}(d, e, z, {order}, skip);")
        cx.fail_if("failed")
        vectors.call("complex_return", "a", "c", "f", "g", "z", "s", order)
        with body.loop("l", lanes):
            _emit_sorted(cx, order, lanes, ("z", "s"))


def _emit_sorted(cx: KernelContext, n: int, lanes: int, parts: Sequence[str]) -> None:
    """Write the eigenvalues of matrix ``b + l`` in ascending order, and its vectors in the same
    order.

    ```
    const double value = skip[l] ? NAN : d[i * 8 + l] * back[l];
    ptrdiff_t to = i;
    for (; to > 0 && values[to - 1] > value; --to)
        values[to] = values[to - 1], order[to] = order[to - 1];
    values[to] = value, order[to] = i;
    ```
    """
    body, c_type = cx.body, cx.type(0).name
    body.line(f"{c_type} *const values = {cx.output(len(parts)).name} + (b + l) * {n};")
    body.line(f"ptrdiff_t order[{n}];")
    with body.loop("i", n):
        value = f"(({c_type} *)d)[i * {lanes} + l] * (({c_type} *)&back)[l]"
        body.line(f"const {c_type} value = skip[l] ? NAN : {value};")
        body.line("ptrdiff_t to = i;")
        with body.block("for (; to > 0 && values[to - 1] > value; --to)"):
            body.line("values[to] = values[to - 1];")
            body.line("order[to] = order[to - 1];")
        body.line("values[to] = value;")
        body.line("order[to] = i;")
    with body.loops(("i", "j"), (n, n)):
        for position, part in enumerate(parts):
            y = f"{cx.output(position).name}[(b + l) * {n * n} + i * {n} + j]"
            source = f"(({c_type} *){part})[(order[j] * {n} + i) * {lanes} + l]"
            body.line(f"{y} = skip[l] ? NAN : {source};")
