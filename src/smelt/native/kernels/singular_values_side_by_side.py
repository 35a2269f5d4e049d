"""Singular values of many small matrices, which are made bidiagonal several at once.

LAPACK's ``bdsqr``, which without vectors is the algorithm that ``gesdd`` calls, then finds the
values of each.
"""

from __future__ import annotations

import math

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lapack_calls import call
from smelt.native.kernels.side_by_side import DOMAIN, MOST, Vectors
from smelt.native.kernels.side_by_side_text import BYTES, lanes_of
from smelt.program.storage import Needs

SINGULAR_VALUES = f"{DOMAIN}::SingularValues"


def takes(instance: Instance) -> bool:
    """Batches of real matrices that fill a vector, small and not empty."""
    shape, type_ = instance.shape(0), instance.type(0).name
    if type_ not in ("float", "double") or 0 in shape:
        return False
    return max(shape[-2:]) <= MOST and math.prod(shape[:-2]) >= lanes_of(type_)


def _needs(instance: Instance) -> Needs:
    """Two vectors of matrices, three of rows; the second diagonal, and what ``bdsqr`` asks."""
    (m, n), size = instance.shape(0)[-2:], instance.type(0).size
    least = min(m, n)
    return Needs(workspace=BYTES * (2 * m * n + 3 * least) + size * 5 * least)


@kernel(SINGULAR_VALUES, needs=_needs)
def singular_values(cx: KernelContext) -> None:
    """A matrix that is not finite gives NaN. Wide ones are transposed first."""
    (m, n), body, t, vectors = cx.shape(0)[-2:], cx.body, cx.type(0).name, Vectors(cx)
    rows, least, lanes = max(m, n), min(m, n), vectors.lanes
    given = a = vectors.room("given", m * n)
    if m < n:
        a = vectors.room("turned", m * n)
    d, e, w = (vectors.room(name, least) for name in "dew")
    body.line(f"{t} *const second = ({t} *)room, *const work = second + {least};")
    with vectors.of_matrices():
        vectors.call("together", f"{cx.input(0).name} + b * {m * n}", given, m * n)
        body.line(f"{vectors.word} wrong = {{0}};")
        with body.loop("i", m * n):
            body.line("wrong += given[i] * 0;")
        if m < n:
            with body.loops(("j", "i"), (n, m)):
                body.line(f"turned[j * {m} + i] = given[i * {n} + j];")
        vectors.call("bidiagonal", a, d, e, w, rows, least)
        with body.loop("l", lanes):
            body.line(f"{t} *const values = {cx.output().name} + (b + l) * {least};")
            body.line("int info = 0;")
            with body.loop("i", least):
                body.line(f"values[i] = (({t} *)d)[i * {lanes} + l];")
                body.line(f"second[i] = i + 1 < {least} ? (({t} *)e)[i * {lanes} + l] : 0;")
            with body.block(f"if ((({t} *)&wrong)[l] == 0)"):
                none = ("work", 1) * 3
                call(cx, "bdsqr", '"U"', least, 0, 0, 0, "values", "second", *none, "work")
                cx.fail_if("info != 0")
                body.line("continue;")
            with body.loop("i", least):
                body.line("values[i] = NAN;")
