"""Types and functions for operators that commute with Transpose: ``op(T(x)) = T'(op'(x))``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants

Perm: TypeAlias = tuple[int, ...]
"""Axis ``i`` of the result of a Transpose is axis ``perm[i]`` of its input."""

Operands: TypeAlias = Sequence["ir.Value | None"]


@dataclass(frozen=True)
class Commuted:
    """An operator moved before a Transpose.

    ``build`` computes it on untransposed operands; a Transpose by ``perm`` of each new result gives
    the old one.
    """

    perm: Perm
    build: Callable[[Builder, Operands], Sequence[ir.Value]]


Perms: TypeAlias = Mapping[ir.Value, Perm]
"""The permutation of each value that is known to be transposed."""

Handler: TypeAlias = Callable[[ir.Node, Perm, Perms, Constants], "Commuted | None"]
"""Function ``(node, perm, perms, constants)`` that returns the Commuted of ``node``, or None.

``perms`` has those operands of ``node`` that are transposed, all by ``perm``."""


def inverse(perm: Perm) -> Perm:
    """Return the permutation that undoes ``perm``."""
    result = [0] * len(perm)
    for index, axis in enumerate(perm):
        result[axis] = index
    return tuple(result)


def without_axes(perm: Perm, old_axes: Iterable[int]) -> Perm:
    """Return ``perm`` after the axes ``old_axes`` of the untransposed operand are removed.

    The remaining axes are numbered again from 0.
    """
    removed_axes = set(old_axes)
    kept = [axis for axis in perm if axis not in removed_axes]
    number = {axis: index for index, axis in enumerate(sorted(kept))}
    return tuple(number[axis] for axis in kept)


def is_identity(perm: Perm) -> bool:
    """True if the permutation changes no axis."""
    return perm == tuple(range(len(perm)))


def normalized(axes: Sequence[int] | None, rank: int) -> tuple[int, ...] | None:
    """Return ``axes`` counted from 0; None if one is out of range or repeated."""
    if axes is None or any(not -rank <= axis < rank for axis in axes):
        return None
    positive_axes = tuple(axis % rank for axis in axes)
    return positive_axes if len(set(positive_axes)) == len(positive_axes) else None


def rebuilt(
    b: Builder, node: ir.Node, operands: Operands, **changed: int | Sequence[int]
) -> Sequence[ir.Value]:
    """Return the results of ``node`` on other operands, with some attributes changed."""
    while operands and operands[-1] is None:
        operands = operands[:-1]
    attributes = [attr for name, attr in node.attributes.items() if name not in changed]
    attributes += ir.convenience.convert_attributes(changed)
    return b.add(ir.Node("", node.op_type, operands, attributes, num_outputs=len(node.outputs)))


def first_is_data(handler: Handler) -> Handler:
    """Wrap ``handler`` so that it is called only if the first operand alone is transposed."""

    def handle(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
        """Return what ``handler`` returns if the first operand alone is transposed, else None."""
        data, *others = node.inputs
        if data is None or data not in perms or any(v in perms for v in others if v is not None):
            return None
        return handler(node, perm, perms, constants)

    return handle
