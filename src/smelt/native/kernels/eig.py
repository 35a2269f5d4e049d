"""Eigenvalues and eigenvectors of general matrices without LAPACK."""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.native.kernels.eig_text import TEXTS
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import FLOAT, KernelContext, kernel
from smelt.native.kernels.lapack_calls import fill_nan, finite
from smelt.native.types import C_TYPES
from smelt.program.run_sizes import is_empty
from smelt.program.storage import Needs

NUMBER = 16
"""Bytes of a complex number in double."""


def _needs(instance: Instance) -> Needs:
    """Schur's form, its vectors, two vectors, and a sign for each eigenvalue."""
    n = instance.shape(0)[-1]
    return Needs(workspace=NUMBER * (2 * n * n + 3 * n))


@kernel("smelt::Eig", kinds=FLOAT, needs=_needs)
def eig(cx: KernelContext) -> None:
    """A matrix that is not finite, or that steps do not end for, gives NaN."""
    a, body, n = cx.input(0), cx.body, cx.shape(0)[-1]
    if is_empty(a.shape):
        return
    outputs = [cx.output(i) for i in range(6)]
    values = [f"{each.name} + b * {n}" for each in outputs[:2]]
    vectors = [f"{each.name} + b * {n * n}" for each in outputs[2:]]
    scratch, t = cx.scratch(C_TYPES[ir.DataType.DOUBLE]), a.type.name
    for name, text in TEXTS.items():
        cx.call(name, text)
    is_finite = finite(cx, f"{a.name} + b * {n * n}", n * n)
    body.line(f"eig_number *const h = (eig_number *){scratch}, *const z = h + {n * n};")
    body.line(f"eig_number *const x = z + {n * n}, *const v = x + {n};")
    body.line(f"int *const sign = (int *)(v + {n});")
    with body.loop("b", math.prod(a.shape[:-2])):
        with body.loop("i", n * n):
            body.line(f"h[i].re = (double){a.name}[b * {n * n} + i];")
            body.line("h[i].im = 0;")
        body.line(f"int failed = !{is_finite};")
        with body.block("if (!failed)"):
            body.line(f"eig_hessenberg({n}, h, z, v);")
            body.line(f"failed = eig_schur({n}, h, z);")
        with body.block("if (failed)"):
            fill_nan(cx, [*((each, n) for each in values), *((each, n * n) for each in vectors)])
            body.line("continue;")
        body.line(f"eig_pairs({n}, h, sign);")
        body.line("ptrdiff_t to = 0;")
        with body.loop("k", n):
            body.line("if (sign[k] < 0)")
            body.line("    continue;")
            _emit_pair(cx, n, values, vectors, t)
            body.line("to += sign[k] > 0 ? 2 : 1;")


def _emit_pair(cx: KernelContext, n: int, values: list[str], vectors: list[str], t: str) -> None:
    """Eigenvalue ``k`` and its vectors, and their conjugates after them if it is of a pair."""
    body = cx.body
    body.line(f"const double turned = h[k * {n} + k].im < 0 ? -1 : 1;")
    with body.loop("c", "(sign[k] > 0 ? 2 : 1)"):
        body.line(f"({values[0]})[to + c] = ({t})h[k * {n} + k].re;")
        body.line(f"const double part = turned * h[k * {n} + k].im;")
        body.line(f"({values[1]})[to + c] = ({t})(sign[k] == 0 ? 0 : c > 0 ? -part : part);")
    for left, (re, im) in ((1, vectors[:2]), (0, vectors[2:])):
        body.line(f"eig_vector({n}, h, z, k, {left}, sign[k] == 0, x, v);")
        with body.loop("i", n), body.loop("c", "(sign[k] > 0 ? 2 : 1)"):
            body.line(f"({re})[i * {n} + to + c] = ({t})v[i].re;")
            body.line(f"({im})[i * {n} + to + c] = ({t})((c > 0 ? -turned : turned) * v[i].im);")
