"""Eigenvalues, eigenvectors and Schur forms of general matrices without LAPACK.

Iterations stop at the precision of the element type, as in the operators' function bodies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import onnx_ir as ir

from smelt.native.kernels import eig_balance_text, eig_complex_text, eig_real_text
from smelt.native.kernels.eig_vectors_text import PAIRS, VECTOR
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import FLOAT, KernelContext, kernel
from smelt.native.kernels.lapack_calls import fill_nan, finite
from smelt.native.kernels.operand import Operand
from smelt.native.types import C_TYPES
from smelt.operators.linalg.own_precision import PRECISION
from smelt.program.storage import Needs

BALANCE = {"eig_balance": eig_balance_text.BALANCE}
NUMBERS = {"eig_number": eig_complex_text.NUMBERS}
REAL = {**eig_balance_text.TEXTS, **eig_real_text.TEXTS}
COMPLEX = {**NUMBERS, **eig_balance_text.TEXTS, **eig_complex_text.TEXTS}

SIZE = 16
"""The bytes of a complex double."""


def _needs(instance: Instance) -> Needs:
    """Return the scratch space: a Schur form, its vectors, two vectors, and two more rows.

    The rows are the balancing factors and the marks for conjugate pairs.
    """
    order = instance.shape(0)[-1]
    return Needs(workspace=SIZE * (2 * order * order + 3 * order))


def _add_functions(cx: KernelContext, texts: Iterable[Mapping[str, str]]) -> None:
    """Add all support functions of ``texts``."""
    for functions in texts:
        for name, text in functions.items():
            cx.call(name, text)


@contextmanager
def _schur(cx: KernelContext, *, is_complex: bool, balances: bool) -> Iterator[None]:
    """Write the Schur form of each matrix ``b``; the caller writes its use in the same loop.

    1. All numbers are scaled by ``2 ** -power``. Rows without off-diagonal elements are exchanged
       to the ends: rows ``lo`` to ``hi`` remain. With ``balances``, these are scaled by ``by``.
    2. Reflections make the matrix ``t`` a Hessenberg matrix; ``z`` is their product.
    3. QR steps make ``t`` the Schur form.

    A matrix with non-finite elements, or without convergence, gives NaN.
    """
    body, n = cx.body, cx.shape(0)[-1]
    inputs = [cx.input(i) for i in range(1 + is_complex)]
    outputs: list[Operand] = [cx.output(i) for i in range(len(cx.instruction.outputs))]
    parts, suffix, number = (2, "_complex", "eig_number") if is_complex else (1, "", "double")
    scratch, rank = cx.scratch(C_TYPES[ir.DataType.DOUBLE]), len(inputs[0].shape)
    precision = PRECISION[ir.DataType.FLOAT if cx.type(0).name == "float" else ir.DataType.DOUBLE]
    body.line(f"const double eps = {precision!r};")
    body.line(f"double *const t = {scratch}, *const z = t + {2 * n * n};")
    body.line(
        f"double *const x = z + {2 * n * n}, *const v = x + {2 * n}, *const by = v + {2 * n};"
    )
    with body.loop("b", math.prod(inputs[0].shape[:-2])):
        checks = [finite(cx, f"{each.name} + b * {n * n}", n * n) for each in inputs]
        body.line("ptrdiff_t lo = 0, hi = 0;")
        body.line(f"int power = 0, failed = !({' && '.join(checks)});")
        with body.block("if (!failed)"):
            with body.loop("i", n * n):
                for part, each in enumerate(inputs):
                    at = f"{parts} * i + {part}" if is_complex else "i"
                    body.line(f"t[{at}] = (double){each.name}[b * {n * n} + i];")
            body.line(f"power = eig_scale({parts * n * n}, t);")
            body.line(f"eig_isolate({n}, {parts}, t, by, &lo, &hi);")
            if balances:
                body.line(f"eig_balance({n}, {parts}, t, by, lo, hi);")
            pointers = ", ".join(f"({number} *){each}" if is_complex else each for each in "tzx")
            body.line(f"eig_hessenberg{suffix}({n}, lo, hi, {pointers});")
            pointers = ", ".join(f"({number} *){each}" if is_complex else each for each in "tz")
            body.line(f"failed = eig_schur{suffix}({n}, lo, hi, {pointers}, eps);")
        with body.block("if (failed)"):
            counts = [math.prod(each.shape[rank - 2 :]) for each in outputs]
            targets = zip(outputs, counts, strict=True)
            fill_nan(cx, [(f"{each.name} + b * {count}", count) for each, count in targets])
            body.line("continue;")
        yield


@kernel("smelt::Eig", kinds=FLOAT, needs=_needs)
def eig(cx: KernelContext) -> None:
    """Write eigenvalues and eigenvectors of real matrices.

    Blocks of 2x2 are made triangular first. The second vector of a conjugate pair is computed from
    the first.
    """
    order, body = cx.shape(0)[-1], cx.body
    _add_functions(cx, (NUMBERS, REAL, BALANCE, {"eig_pairs": PAIRS, "eig_vector": VECTOR}))
    with _schur(cx, is_complex=False, balances=True):
        body.line("eig_number *const form = (eig_number *)t, *const basis = (eig_number *)z;")
        body.line(f"int *const pair = (int *)(by + {order});")
        body.line(f"eig_widen({order * order}, form);")
        body.line(f"eig_widen({order * order}, basis);")
        body.line(f"eig_pairs({order}, form, basis, pair);")
        with body.loop("k", order):
            _emit_value(cx, order)
            with body.block("if (pair[k] >= 0)"):
                _emit_vectors(cx, order, "c > 0 ? -v[2 * i + 1] : v[2 * i + 1]", with_pairs=True)


@kernel("smelt::ComplexEig", kinds=FLOAT, needs=_needs)
def complex_eig(cx: KernelContext) -> None:
    """Write eigenvalues and eigenvectors of complex matrices."""
    order, body = cx.shape(0)[-1], cx.body
    _add_functions(cx, (COMPLEX, BALANCE, {"eig_vector": VECTOR}))
    with _schur(cx, is_complex=True, balances=True):
        body.line("eig_number *const form = (eig_number *)t, *const basis = (eig_number *)z;")
        with body.loop("k", order):
            _emit_value(cx, order)
            _emit_vectors(cx, order, "v[2 * i + 1]", with_pairs=False)


def _emit_value(cx: KernelContext, n: int) -> None:
    """Write eigenvalue ``k`` from the diagonal, scaled back by ``power``."""
    for output, part in zip(map(cx.output, range(2)), ("re", "im"), strict=True):
        value = f"ldexp(form[k * {n} + k].{part}, power)"
        cx.body.line(f"{output.name}[b * {n} + k] = ({output.type.name}){value};")


def _emit_vectors(cx: KernelContext, n: int, imaginary: str, *, with_pairs: bool) -> None:
    """Write the left and the right eigenvector ``k``, and the next one of a conjugate pair.

    ``with_pairs``: the matrix is real, and the C array ``pair`` tells which vectors are pairs.
    ``imaginary`` is the imaginary part of element ``i``; in the next vector of a pair, ``c`` is 1.

    ```
    eig_solve(4, form, pair, k, 1, eps, (eig_number *)x);
    eig_vector(4, lo, hi, basis, by, 1, pair + k, (eig_number *)x, (eig_number *)v);
    for (int64_t i = 0; i < 4; ++i)
        for (int64_t c = 0; c < (pair[k] ? 2 : 1); ++c)
            y2[b * 16 + i * 4 + k + c] = (float)v[2 * i];
    ```
    """
    body = cx.body
    pair, pair_of_k = ("pair", "pair + k") if with_pairs else ("NULL", "NULL")
    for left in (1, 0):
        body.line(f"eig_solve({n}, form, {pair}, k, {left}, eps, (eig_number *)x);")
        arguments = f"{n}, lo, hi, basis, by, {left}, {pair_of_k}, (eig_number *)x, (eig_number *)v"
        body.line(f"eig_vector({arguments});")
        re, im = (cx.output(i) for i in ((2, 3) if left else (4, 5)))
        with body.loop("i", n), body.loop("c", "(pair[k] ? 2 : 1)" if with_pairs else 1):
            at = f"b * {n * n} + i * {n} + k + c"
            body.line(f"{re.name}[{at}] = ({re.type.name})v[2 * i];")
            body.line(f"{im.name}[{at}] = ({im.type.name})({imaginary});")


@kernel("smelt::Schur", kinds=FLOAT, needs=_needs)
def schur(cx: KernelContext) -> None:
    """Write the real Schur form and its vectors."""
    _add_functions(cx, (REAL,))
    with _schur(cx, is_complex=False, balances=False):
        _emit_form(cx, is_complex=False)


@kernel("smelt::ComplexSchur", kinds=FLOAT, needs=_needs)
def complex_schur(cx: KernelContext) -> None:
    """Write the complex Schur form and its vectors."""
    _add_functions(cx, (COMPLEX,))
    with _schur(cx, is_complex=True, balances=False):
        _emit_form(cx, is_complex=True)


def _emit_form(cx: KernelContext, *, is_complex: bool) -> None:
    """Write the Schur form, scaled back by ``power``, and its vectors, row exchanges undone.

    Complex numbers lie as pairs in ``t`` and ``z``, and have two outputs: real and imaginary parts.

    ```
    eig_put_back(3, lo, hi, by, z, 6);
    for (ptrdiff_t i = 0; i < 9; ++i) {
        y0[b * 9 + i] = (float)ldexp(t[2 * i + 0], power);
        y2[b * 9 + i] = (float)z[2 * i + 0];
        ...
    ```
    """
    body, order, count = cx.body, cx.shape(0)[-1], 2 if is_complex else 1
    body.line(f"eig_put_back({order}, lo, hi, by, z, {count * order});")
    with body.loop("i", order * order):
        for part in range(count):
            form, vectors = cx.output(part), cx.output(count + part)
            at = f"2 * i + {part}" if is_complex else "i"
            c_type = form.type.name
            body.line(f"{form.name}[b * {order * order} + i] = ({c_type})ldexp(t[{at}], power);")
            body.line(f"{vectors.name}[b * {order * order} + i] = ({c_type})z[{at}];")
