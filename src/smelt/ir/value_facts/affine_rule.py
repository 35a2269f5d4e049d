"""The type of a rule, which returns the affine form of an operator's result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.value_facts.affine import Affine


class Proof(Protocol):
    """The part of ``AffineProof`` that rules use."""

    constants: Constants

    def of(self, value: ir.Value | None, depth: int = 0) -> Affine | None:
        """Return the affine form of ``value``, or None if it is not proved."""

    def parts(self, indices: ir.Value | None, depth: int = 0) -> list[Affine] | None:
        """Return one affine form per component of the index tuples, or None."""


Rule: TypeAlias = Callable[[Proof, ir.Node, ir.Value, int], Affine | None]
"""``rule(proof, node, value, depth)`` returns the form of ``value``, a result of ``node``, or None.

``depth`` is the depth of the operands in the proof.
"""


def rank_of(value: ir.Value | None) -> int:
    """Return the rank of ``value``, whose shape the proof requires to be known."""
    assert value is not None
    assert value.shape is not None
    return len(value.shape)
