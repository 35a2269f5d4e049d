"""``smelt.Schur``, ``smelt.Hessenberg`` and ``smelt.Tridiagonal``: LAPACK's own, without a body.

Schur's form needs shifted QR steps that deflate block by block, whose course depends on every bit;
the packed forms of the others are of use to LAPACK only. A target must have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.shapes import Dim
from smelt.operators.declare import Attribute, Attributes, Computed, Given, Operator, Result
from smelt.operators.linalg.batches import check_square, each


def _infer(name: str, shapes: Callable[[Dim, Dim], list[list[Dim]]]) -> Callable[..., list[Result]]:
    """The rule of an operator on square matrices, from the shapes of its results."""

    def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
        (a,) = inputs
        if a is None:
            raise ValueError(f"{name} takes one operand")
        check_square(a, name)
        if a.shape is None:
            return [Result(a.dtype, None) for _ in shapes(1, 1)]
        *batch, _, n = a.shape.dims
        less = (
            max(n - 1, 0) if isinstance(n, int) else ir.SymbolicDim(n.value and f"max({n} - 1, 0)")
        )
        return [Result(a.dtype, ir.Shape([*batch, *dims])) for dims in shapes(n, less)]

    return infer


def schur_reference(inputs: Given, attributes: Attributes) -> Computed:
    """``gees`` of LAPACK, in real form; NaN for what is not finite."""
    from scipy.linalg import schur

    (a,) = inputs
    assert a is not None

    def decompose(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        if not np.isfinite(matrix).all():
            return (np.full_like(matrix, np.nan),) * 2
        form, vectors = schur(matrix, output="real")
        return form, vectors

    return each(decompose, (a.shape[-2:],) * 2, (a.dtype,) * 2, (a,), (2,))


def hessenberg_reference(inputs: Given, attributes: Attributes) -> Computed:
    """``gehrd`` of LAPACK."""
    from scipy.linalg.lapack import get_lapack_funcs

    (a,) = inputs
    assert a is not None
    n = a.shape[-1]
    (gehrd,) = get_lapack_funcs(("gehrd",), dtype=a.dtype)

    def reduce(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        packed, taus, _ = gehrd(matrix)
        return packed, taus[: n - 1]

    return each(reduce, ((n, n), (max(n - 1, 0),)), (a.dtype,) * 2, (a,), (2,))


def tridiagonal_reference(inputs: Given, attributes: Attributes) -> Computed:
    """``sytrd`` of LAPACK."""
    from scipy.linalg.lapack import get_lapack_funcs

    (a,) = inputs
    assert a is not None
    n, lower = a.shape[-1], attributes["lower"]
    (sytrd,) = get_lapack_funcs(("sytrd",), dtype=a.dtype)

    def reduce(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(sytrd(matrix, lower=lower)[:4])

    less = (max(n - 1, 0),)
    return each(reduce, ((n, n), (n,), less, less), (a.dtype,) * 4, (a,), (2,))


OPERATORS = (
    Operator(
        domain="smelt",
        name="Schur",
        summary="Real form of Schur, and its vectors",
        inputs=("a",),
        outputs=("form", "vectors"),
        infer=_infer("Schur", lambda n, less: [[n, n], [n, n]]),
        reference=schur_reference,
    ),
    Operator(
        domain="smelt",
        name="Hessenberg",
        summary="Form of Hessenberg, packed with its reflections",
        inputs=("a",),
        outputs=("packed", "taus"),
        infer=_infer("Hessenberg", lambda n, less: [[n, n], [less]]),
        reference=hessenberg_reference,
    ),
    Operator(
        domain="smelt",
        name="Tridiagonal",
        summary="Tridiagonal form of symmetric matrices, packed with its reflections",
        inputs=("a",),
        outputs=("packed", "diagonal", "side", "taus"),
        attributes=(Attribute("lower", ir.AttributeType.INT, 1),),
        infer=_infer("Tridiagonal", lambda n, less: [[n, n], [n], [less], [less]]),
        reference=tridiagonal_reference,
    ),
)
