"""Sizes of arrays as sums of products of named sizes, without the symbols of a model.

A dim ``past + 2*count`` is the terms ``((1, ("past",)), (2, ("count",)))``. The form needs no
package for algebra, so that a saved program is loaded in a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from smelt.runtime.jit.open_caller import Fitting, Shapes

Terms: TypeAlias = tuple[tuple[int, tuple[str, ...]], ...]
"""The summands of a size: a factor, and the names that it is multiplied by."""


@dataclass(frozen=True)
class TermSizes:
    """The shapes of ``inputs`` and ``outputs``, and the ``bounds`` of each name, in their order.

    A call returns the sizes by that order and the shapes of the outputs. It returns None for shapes
    that disagree with each other or with the bounds.
    """

    inputs: Sequence[Sequence[Terms]]
    outputs: Sequence[Sequence[Terms]]
    bounds: Mapping[str, tuple[int, int]]

    def __call__(self, shapes: Shapes) -> Fitting | None:
        """Return the fitting for inputs of ``shapes``."""
        if [len(shape) for shape in shapes] != [len(port) for port in self.inputs]:
            return None
        pairs = [
            (terms, size)
            for port, shape in zip(self.inputs, shapes, strict=True)
            for terms, size in zip(port, shape, strict=True)
        ]
        sizes = solved(pairs)
        if any(name not in sizes for name in self.bounds):
            return None
        if any(value_of(terms, sizes) != size for terms, size in pairs):
            return None
        if any(not low <= sizes[name] <= high for name, (low, high) in self.bounds.items()):
            return None
        results = [tuple(value_of(terms, sizes) for terms in port) for port in self.outputs]
        return [sizes[name] for name in self.bounds], results


def value_of(terms: Terms, sizes: Mapping[str, int]) -> int:
    """Return the size that ``terms`` have with the ``sizes`` of all their names."""
    return sum(factor * prod(sizes[name] for name in names) for factor, names in terms)


def solved(pairs: Sequence[tuple[Terms, int]]) -> dict[str, int]:
    """Return the sizes of the names that follow from terms and their values.

    Terms with one unknown name, in one summand, give it its size; a quotient with a remainder is
    rounded down, so that the terms then differ from their value.
    """
    sizes: dict[str, int] = {}
    before = -1
    while before < len(sizes):
        before = len(sizes)
        for terms, value in pairs:
            unknown = [(k, names) for k, names in terms if not sizes.keys() >= set(names)]
            if len(unknown) != 1:
                continue
            ((factor, names),) = unknown
            missing = [name for name in names if name not in sizes]
            known = factor * prod(sizes[name] for name in names if name in sizes)
            if len(missing) == 1 and known:
                rest = [term for term in terms if term not in unknown]
                sizes[missing[0]] = (value - value_of(tuple(rest), sizes)) // known
    return sizes
