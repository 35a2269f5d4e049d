"""What callers give for a contraction, checked: equations, shapes, element types and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.same_shape import Dim
from smelt.operators.contraction import (
    Equation,
    counts_of,
    parse,
    sizes_of,
    with_labels_for_ones,
)
from smelt.operators.semiring import Semiring

MOST_DIMS = 64
"""The most dims of a NumPy array."""


def equation_of(text: str, shapes: Sequence[Sequence[Dim]]) -> tuple[Equation, dict[str, Dim]]:
    """Return the equation for operands of ``shapes``, and the size of each label.

    Raises UsageError E655 for an equation that does not parse, E656 for shapes that do not fit it.
    """
    try:
        parsed = parse(str(text), [len(shape) for shape in shapes])
    except ValueError as error:
        raise UsageError(
            "E655",
            "the equation does not fit",
            why=str(error),
            fix="give an equation with one term for each operand, such as 'ij,jk->ik'",
        ) from error
    try:
        parsed = with_labels_for_ones(parsed, shapes)
    except ValueError as error:
        raise UsageError(
            "E656",
            "the shapes do not fit the equation",
            why=str(error),
            fix="give each operand one dim for each letter of its term; equal letters are equal "
            "sizes",
        ) from error
    arrays = {f"operand {number}": term for number, term in enumerate(parsed.terms)}
    arrays["the result"] = parsed.out
    widest = max(arrays, key=lambda name: len(arrays[name]))
    if len(arrays[widest]) > MOST_DIMS:
        raise UsageError(
            "E656",
            f"{widest} of the equation has {len(arrays[widest])} dims",
            why=f"an array has at most {MOST_DIMS} dims in ONNX and NumPy",
            fix="split the equation so that no array has more dims",
        )
    return parsed, sizes_of(parsed.terms, shapes)


def limit_of(
    memory_limit: int | str | None, equation: Equation, sizes: Mapping[str, Dim]
) -> int | None:
    """Return the most elements of an intermediate result, None for no limit.

    ``max_input`` stands for the elements of the largest operand, and -1 for no limit, as in
    opt_einsum. Raises UsageError E658 for any other value.
    """
    if memory_limit is None or memory_limit == -1:
        return None
    if memory_limit == "max_input":
        counts = counts_of(sizes)
        return max(1, *(prod(counts[label] for label in term) for term in equation.terms))
    if isinstance(memory_limit, int) and not isinstance(memory_limit, bool) and memory_limit > 0:
        return memory_limit
    raise UsageError(
        "E658",
        f"memory_limit={memory_limit!r} is not a number of elements",
        fix="give a whole number, such as memory_limit=1_000_000, or 'max_input', or None",
        why="the limit counts elements, 1 or more",
    )


def type_over(dtype: Any, semiring: Semiring) -> np.dtype:
    """Return the NumPy type that ``dtype`` names; raises UsageError E656 if ``semiring`` is not
    defined on it.
    """
    given = element_type(dtype)
    if not semiring.supports(given):
        fix = (
            "use semiring='or_and'"
            if given.kind == "b"
            else "choose another dtype=, or another semiring="
        )
        raise UsageError(
            "E656",
            f"the semiring {semiring} is not defined on {given}",
            fix=fix,
            why="its operators are not defined for this element type",
        )
    return given


def element_type(dtype: Any) -> np.dtype:
    """Return the NumPy type that ``dtype`` names; raises UsageError E656."""
    try:
        found: np.dtype = np.dtype(dtype)
        ir.DataType.from_numpy(found)
        return found
    except TypeError as error:
        raise UsageError(
            "E656",
            f"{dtype!r} is not an element type",
            why="neither NumPy nor ml_dtypes has an element type of that name",
            fix="dtype='float32'",
        ) from error


def dims_of(shape: Any) -> list[Dim]:
    """Return a shape, or the shape of an array, as dims; raises UsageError E656."""
    shape = getattr(shape, "shape", shape)
    try:
        if isinstance(shape, str):
            raise TypeError("a str is not a sequence of names")
        return [ir.SymbolicDim(n) if isinstance(n, str) else _size(index(n)) for n in shape]
    except TypeError as error:
        text = repr(shape)
        raise UsageError(
            "E656",
            f"{text if len(text) < 60 else text[:57] + '...'} is not a shape",
            fix="give a tuple of numbers or names, or an array, for each operand",
            why="a shape is a tuple of sizes",
        ) from error


def _size(size: int) -> int:
    """Return ``size``; raises UsageError E656 if it is negative."""
    if size < 0:
        raise UsageError(
            "E656",
            f"{size} cannot be the size of a dim",
            why="the size of a dim is a whole number of 0 or more, or a name",
            fix="give a number or a name",
        )
    return size
