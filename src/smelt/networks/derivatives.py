"""The derivative of a contraction with respect to an operand, which is a contraction again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smelt.operators.contraction import Equation

Factor = tuple[str, int]
"""A further operand of a derivative: ``ones`` or ``eye``, and its size."""


def unused_labels(equation: Equation, count: int) -> list[str]:
    """Return ``count`` characters that ``equation`` does not use as labels."""
    used = {label for term in equation.terms for label in term}
    found = (label for label in map(chr, range(0xE000, 0xF8FF)) if label not in used)
    return [next(found) for _ in range(count)]


def backward(
    equation: Equation, sizes: Mapping[str, Any], number: int
) -> tuple[Equation, list[Factor]]:
    """Return the contraction that computes the gradient of operand ``number``.

    Its operands are the other operands, the gradient of the result, and the factors: a vector of
    ones for a dim that nothing else has, and an identity for a label that the operand repeats. The
    gradient of ``aab`` in ``aab,b->b`` is ``b,b,a,aA->aAb`` with the result's gradient second.
    """
    term = equation.terms[number]
    terms = [*equation.terms[:number], *equation.terms[number + 1 :], equation.out]
    known = {label for each in terms for label in each}
    fresh = iter(unused_labels(equation, len(term)))
    out: list[str] = []
    factors: list[Factor] = []
    for place, label in enumerate(term):
        size = int(str(sizes[label]))
        if label in term[:place]:
            twin = next(fresh)
            terms.append((label, twin))
            factors.append(("eye", size))
            out.append(twin)
            continue
        if label not in known:
            terms.append((label,))
            factors.append(("ones", size))
        out.append(label)
    return Equation(tuple(terms), tuple(out)), factors


def optimize_for_derivative(optimize: Any) -> Any:
    """Return the option ``optimize`` for a derivative of a contraction with this ``optimize``.

    The name of a finder serves any equation. A path, a tree or a finder object may fit the original
    equation only, so the derivative gets ``auto``.
    """
    return optimize if isinstance(optimize, str) else "auto"


def factor_arrays(factors: Sequence[Factor], dtype: Any) -> list[np.ndarray]:
    """Return the factors as arrays."""
    return [np.ones(n, dtype) if kind == "ones" else np.eye(n, dtype=dtype) for kind, n in factors]


def batched(equation: Equation, axes: Sequence[int | None]) -> Equation:
    """Return ``equation`` with a batch dim, which is the first dim of the result.

    ``axes`` has the position of the batch dim in each operand, None for an operand without it.
    """
    (label,) = unused_labels(equation, 1)
    terms = [
        term if axis is None else (*term[:axis], label, *term[axis:])
        for term, axis in zip(equation.terms, axes, strict=True)
    ]
    return Equation(tuple(terms), (label, *equation.out))
