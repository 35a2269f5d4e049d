"""Operands that are known when a network is compiled: their products are computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from smelt.errors import UsageError
from smelt.networks.arguments import numbers_of
from smelt.networks.tree import numbered, path_between
from smelt.operators.contraction import Equation
from smelt.operators.contraction_paths import Path

Contract = Callable[[Equation, Path, Sequence[np.ndarray]], np.ndarray]
"""Contracts arrays by a path."""


def constant_arrays(
    constants: Sequence[int] | None, operands: Sequence[Any], dtype: np.dtype
) -> dict[int, np.ndarray]:
    """Return the arrays of the operands numbered in ``constants``, as ``dtype``.

    Raises UsageError E656 for a number of no operand, for a shape instead of an array, and for an
    array that ``dtype`` cannot hold.
    """
    found: dict[int, np.ndarray] = {}
    for number in numbers_of("constants", constants):
        if number not in range(len(operands)):
            raise _no_constant(number, f"there are {len(operands)} operands")
        if not hasattr(operands[number], "shape"):
            raise _no_constant(number, "a shape was given for it")
        array = np.asarray(operands[number])
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise _no_constant(number, f"its elements are {array.dtype}, the network's {dtype}")
        found[number] = np.array(array, dtype, order="C")
    return found


def _no_constant(number: int, why: str) -> UsageError:
    """Return E656: operand ``number`` cannot be a constant."""
    return UsageError(
        "E656",
        f"operand {number} cannot be a constant",
        why=why,
        fix="give an array in place of the shape of each operand that constants= numbers",
    )


def fold_constants(
    equation: Equation, path: Path, constants: Mapping[int, np.ndarray], contract: Contract
) -> tuple[Equation, Path, dict[int, np.ndarray]]:
    """Return equation, path and constants after products of constants were computed.

    Each largest subtree of the contraction whose operands are all constants becomes one constant,
    which ``contract`` computes. Other operands keep their order; the new constants follow them.
    Operands have the numbers 0 to n - 1, the products of ``path`` n, n + 1, ...
    """
    leaves = len(equation.terms)
    children, labels = numbered(equation, path)
    is_constant = [number in constants for number in range(leaves)]
    for first, second in children:
        is_constant.append(is_constant[first] and is_constant[second])
    roots = [
        number
        for number in range(leaves, len(labels))
        if is_constant[number]
        and not any(number in pair and is_constant[leaves + i] for i, pair in enumerate(children))
    ]
    if not roots:
        return equation, path, dict(constants)
    folded = {leaf for root in roots for leaf in _leaves_of(root, leaves, children)}
    remaining = [number for number in range(leaves) if number not in folded]
    made: dict[int, np.ndarray] = {
        remaining.index(n): a for n, a in constants.items() if n not in folded
    }
    for root in roots:
        below = _leaves_of(root, leaves, children)
        inner = Equation(tuple(equation.terms[leaf] for leaf in below), labels[root])
        inner_path = path_between(below, root, leaves, children)
        made[len(remaining)] = contract(inner, inner_path, [constants[leaf] for leaf in below])
        remaining.append(root)
    outer = Equation(tuple(labels[number] for number in remaining), equation.out)
    if len(remaining) == 1:
        return outer, (), made
    return outer, path_between(remaining, leaves + len(children) - 1, leaves, children), made


def _leaves_of(root: int, leaves: int, children: Sequence[tuple[int, int]]) -> list[int]:
    """Return the numbers of the operands that the product ``root`` is made of, sorted."""
    found, waiting = [], [root]
    while waiting:
        number = waiting.pop()
        if number < leaves:
            found.append(number)
        else:
            waiting.extend(children[number - leaves])
    return sorted(found)
