"""Run the slices of a contraction one by one, and put their results together.

The order of the sums is fixed: slices ``[lo, hi)`` are those of ``[lo, mid)`` plus those of ``[mid,
hi)``, where ``mid - lo`` is the largest power of two below ``hi - lo``. With n slices, rounding
adds at most ``ceil(log2 n)`` ulp of the sum of their absolute values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt.errors import UsageError
from smelt.networks.arguments import items_of
from smelt.networks.array_kinds import numpy_arrays
from smelt.operators.semiring import PLUS, Semiring

if TYPE_CHECKING:
    from smelt.networks.network import Network

Progress = Callable[[int, int], None]
"""Receives the number of slices done, and of all."""


def operands_of(network: Network, arrays: Sequence[Any]) -> list[np.ndarray]:
    """Return ``arrays`` with the constants of ``network``; raises UsageError E671 if one does not
    fit.
    """
    given, _ = numpy_arrays(items_of("arrays", arrays, "array"))
    operands, fixed = iter(given), dict(network.constants)
    expected = len(network.equation.terms) - len(fixed)
    if len(given) != expected:
        raise _misfit(f"{len(given)} arrays for {expected} operands")
    found = [
        fixed[number] if number in fixed else next(operands)
        for number in range(len(network.equation.terms))
    ]
    for number, (array, term) in enumerate(zip(found, network.equation.terms, strict=True)):
        shape = tuple(network.sizes[label] for label in term)
        if array.shape != shape or array.dtype != network.dtype:
            raise _misfit(
                f"operand {number} is {array.dtype}{list(array.shape)}, "
                f"not {network.dtype}{list(shape)}"
            )
    return found


def _misfit(what: str) -> UsageError:
    """Return E671: the arrays are not those of the network."""
    return UsageError(
        "E671",
        what,
        why="slices read parts of the operands that the network was compiled for",
        fix="pass one array for each operand, of the shape and element type it was compiled for",
    )


def counts_of_slices(network: Network) -> tuple[int, int]:
    """Return ``(summed, parts)``: the result has ``parts`` parts, each the sum of ``summed``
    slices.

    ``parts`` counts the indices of sliced labels of the result, ``summed`` those of other sliced
    labels.
    """
    out = network.equation.out
    sizes = network.sliced
    return (
        prod(size for label, size in sizes.items() if label not in out),
        prod(size for label, size in sizes.items() if label in out),
    )


def indices_of(network: Network, number: int) -> dict[str, int]:
    """Return the index of each sliced label in slice ``number``; the first one changes fastest."""
    found = {}
    for label, size in network.sliced.items():
        number, found[label] = divmod(number, size)
    return found


def parts_of(network: Network, operands: Sequence[np.ndarray], number: int) -> list[np.ndarray]:
    """Return the parts of ``operands`` that slice ``number`` reads, as contiguous arrays."""
    indices = indices_of(network, number)
    parts = []
    for array, term in zip(operands, network.equation.terms, strict=True):
        place = tuple(indices.get(label, slice(None)) for label in term)
        parts.append(np.asarray(array[place], order="C"))
    return parts


def sum_of_two(semiring: Semiring, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sum of two results of slices, in their element type."""
    return np.asarray(PLUS[semiring.plus].ufunc(a, b), a.dtype)


@dataclass
class PairwiseSum:
    """Adds up terms one by one, in the pairwise order that the module states.

    ``stack`` has pairs ``(n, sum of n terms)`` with n a power of two, the largest first. It has at
    most ``log2`` as many entries as there are terms, plus one.
    """

    plus: Callable[[Any, Any], Any]
    stack: list[tuple[int, Any]] = field(default_factory=list)

    def add(self, term: Any) -> None:
        """Add the next term."""
        self.stack.append((1, term))
        while len(self.stack) > 1 and self.stack[-1][0] == self.stack[-2][0]:
            (size, a), (_, b) = self.stack[-2:]
            self.stack[-2:] = [(2 * size, self.plus(a, b))]

    def total(self) -> Any:
        """Return the sum of all terms; at least one was added."""
        *rest, (_, total) = self.stack
        for _, term in reversed(rest):
            total = self.plus(term, total)
        return total


def write_part(network: Network, result: np.ndarray, part: int, value: np.ndarray) -> None:
    """Write ``value``, the sum of the slices of ``part``, to its place in ``result``."""
    summed, _ = counts_of_slices(network)
    indices = indices_of(network, part * summed)
    result[tuple(indices.get(label, slice(None)) for label in network.equation.out)] = value


def empty_result(network: Network) -> np.ndarray:
    """Return an array of the shape and type of the whole result, not filled."""
    shape = [int(str(network.sizes[label])) for label in network.equation.out]
    return np.empty(shape, network.dtype)


def sum_slices(
    network: Network,
    results: Callable[[range], Iterator[np.ndarray]],
    *,
    progress: Progress | None,
    checkpoint: Path | None,
    key: str,
) -> np.ndarray:
    """Return the contraction from the results of its slices, which ``results`` yields in order.

    With ``checkpoint``, the state is kept in that file and read again, if it is of ``key``.
    """
    from smelt.networks.checkpoints import Checkpoint

    summed, parts = counts_of_slices(network)
    kept = Checkpoint(checkpoint, key)
    result = empty_result(network)
    sums = PairwiseSum(partial(sum_of_two, network.semiring))
    start = kept.read(result, sums.stack)
    total = summed * parts
    for done, term in enumerate(results(range(start, total)), start + 1):
        sums.add(term)
        if done % summed == 0:
            write_part(network, result, done // summed - 1, sums.total())
            sums.stack.clear()
        kept.write(result, sums.stack, done)
        if progress is not None:
            progress(done, total)
    kept.remove()
    return result
