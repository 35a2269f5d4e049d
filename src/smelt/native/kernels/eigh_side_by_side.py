"""Eigenvectors of many small symmetric matrices, which are made tridiagonal several at once.

What comes before the QR steps takes LAPACK half of the time for matrices of 16 rows. The steps
themselves, which end for each matrix when it is done, are those of its ``steqr``, which is what
``syevd`` calls for matrices as small as these.
"""

from __future__ import annotations

import math

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lapack_calls import call
from smelt.native.kernels.side_by_side import DOMAIN, Vectors
from smelt.native.kernels.side_by_side_text import BYTES, lanes_of
from smelt.program.storage import Needs

EIGH = f"{DOMAIN}::Eigh"
MOST = 25
"""Rows beyond which ``syevd`` divides matrices: vectors could have other signs."""


def takes(instance: Instance) -> bool:
    """Batches of real matrices that fill a vector, given by their lower triangle."""
    shape, type_ = instance.shape(0), instance.type(0).name
    if type_ not in ("float", "double") or not instance.attributes["lower"]:
        return False
    return 2 <= shape[-1] <= MOST and math.prod(shape[:-2]) >= lanes_of(type_)


def _needs(instance: Instance) -> Needs:
    """Three vectors of matrices, one of rows and of taus; one matrix and what ``steqr`` asks."""
    n, size = instance.shape(0)[-1], instance.type(0).size
    return Needs(workspace=BYTES * (3 * n * n + 2 * n) + size * (n * n + 3 * n))


@kernel(EIGH, needs=_needs)
def eigh(cx: KernelContext) -> None:
    """A triangle that is not finite gives NaN."""
    n, body, t, vectors = cx.shape(0)[-1], cx.body, cx.type(0).name, Vectors(cx)
    part, lanes = n - 1, vectors.lanes
    a, q = vectors.room("a", n * n), vectors.room("q", n * n)
    inner, w = vectors.room("inner", n * n), vectors.room("w", n)
    body.line(f"{t} *const taus = ({t} *)room;")
    body.line(f"{t} *const z = ({t} *)(room + {n}), *const e = z + {n * n};")
    body.line(f"{t} *const work = e + {n};")
    with vectors.of_matrices():
        vectors.call("together", f"{cx.input(0).name} + b * {n * n}", a, n * n)
        body.line(f"{vectors.word} wrong = {{0}};")
        with body.loop("i", n), body.loop("j", "i + 1"):
            body.line(f"wrong += a[i * {n} + j] * 0;")
        vectors.call("tridiagonal", a, "taus", w, n)
        with body.loops(("i", "j"), (part, part)):
            body.line(f"inner[i * {part} + j] = a[(i + 1) * {n} + j];")
        vectors.call("multiply", inner, "taus", q, w, part, part, part)
        with body.loop("l", lanes):
            _emit_steps(cx, n, lanes)


def _emit_steps(cx: KernelContext, n: int, lanes: int) -> None:
    """Of matrix ``b + l``: its diagonals, the product of its reflections, and its QR steps."""
    body, t, part = cx.body, cx.type(0).name, n - 1
    values = f"{cx.output(1).name} + (b + l) * {n}"
    result = f"{cx.output(0).name} + (b + l) * {n * n}"
    body.line(f"{t} *const d = {values}, *const y = {result};")
    body.line("int info = 0;")
    with body.loop("i", n):
        body.line(f"d[i] = (({t} *)a)[(i * {n} + i) * {lanes} + l];")
        body.line(f"e[i] = i < {part} ? (({t} *)a)[((i + 1) * {n} + i) * {lanes} + l] : 0;")
    with body.loops(("j", "i"), (n, n)):
        inside = f"(({t} *)q)[((i - 1) * {part} + j - 1) * {lanes} + l]"
        body.line(f"z[j * {n} + i] = i && j ? {inside} : i == j;")
    with body.block(f"if ((({t} *)&wrong)[l] == 0)"):
        call(cx, "steqr", '"V"', n, "d", "e", "z", n, "work")
        cx.fail_if("info != 0")
    with body.block("else"):
        body.line("info = 1;")
    with body.loop("i", n):
        body.line("d[i] = info ? NAN : d[i];")
        with body.loop("j", n):
            body.line(f"y[i * {n} + j] = info ? NAN : z[j * {n} + i];")
