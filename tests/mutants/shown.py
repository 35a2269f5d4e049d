"""A wrong pass and a model on which it shows."""

from __future__ import annotations

from dataclasses import dataclass

from random_graphs.mutation import Mutant

from smelt.passes.registry import find_pass


@dataclass(frozen=True)
class Shown:
    """``pass_`` with ``old`` replaced by ``new`` in ``function`` computes something else for
    ``graph``, an ONNX text at ``opset``. ``function`` is ``module:name`` under ``smelt``."""

    pass_: str
    function: str
    old: str
    new: str
    graph: str
    opset: int = 23

    @property
    def mutant(self) -> Mutant:
        """The change, as ``random_graphs.mutation.applied`` takes it."""
        return Mutant("", self.pass_, self.function, self.old, self.new)

    @property
    def operators(self) -> frozenset[tuple[str, str]]:
        """What the pass makes beyond ONNX, which a target would have to list."""
        return frozenset(find_pass(self.pass_).makes)

    def __str__(self) -> str:
        return f"{self.pass_}: {self.old} -> {self.new}"
