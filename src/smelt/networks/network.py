"""The artifact of a tensor network: it also knows its equation, its path and its slices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from smelt.ir.same_shape import Dim
from smelt.operators.contraction import Equation
from smelt.operators.contraction_slices import Slices
from smelt.operators.semiring import Semiring
from smelt.targets.base import Artifact


@dataclass(frozen=True)
class Network:
    """What a contraction was compiled from.

    ``sizes`` has the size of each label of ``equation``; ``constants`` the arrays of operands that
    calls leave out, by number; ``options`` are those of the target.
    """

    equation: Equation
    sizes: Mapping[str, Dim]
    slices: Slices
    dtype: np.dtype
    semiring: Semiring
    constants: tuple[tuple[int, np.ndarray], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sliced(self) -> dict[str, int]:
        """The sliced labels with their sizes, summed ones first."""
        out = self.equation.out
        labels = sorted(self.slices.labels, key=lambda label: label in out)
        return {label: int(str(self.sizes[label])) for label in labels}


@dataclass
class Contraction(Artifact):
    """An artifact of ``smelt.compile_einsum``; call it with one array per operand."""

    network: Network | None = None

    @classmethod
    def of(cls, artifact: Artifact, network: Network) -> Contraction:
        """Return ``artifact`` as the contraction of ``network``."""
        given = {each.name: getattr(artifact, each.name) for each in fields(artifact)}
        return cls(**given, network=network)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as ``Artifact`` does, with the network."""
        return _restored, (super().__reduce__(), self.network)


def _restored(
    reduced: tuple[Callable[..., Artifact], tuple[Any, ...]], network: Network
) -> Contraction:
    """Return the contraction that was pickled."""
    make, arguments = reduced
    return Contraction.of(make(*arguments), network)
