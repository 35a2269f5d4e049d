"""Prove that the elements of a value are affine in their index, from its producers."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.ir.value_facts.affine import Affine, of_array
from smelt.ir.value_facts.affine_rules import RULES

DEEP = 48
"""The most producers between a value and the end of a proof; exported masks need about 20."""

SMALL = 1 << 20
"""The largest constant, in bytes, that is inspected; positions are a few thousand numbers."""

TYPES = (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL)


class AffineProof:
    """Proves affine forms of values of one model; each value is visited once."""

    def __init__(self, constants: Constants) -> None:
        """Begin without proofs."""
        self.constants = constants
        self._known: dict[ir.Value, Affine | None] = {}  # None for a value without a proof

    def of(self, value: ir.Value | None, depth: int = 0) -> Affine | None:
        """Return the affine form of an integer or boolean ``value``; None if it is not proved."""
        if value is None or value.shape is None or value.dtype not in TYPES:
            return None
        if value not in self._known:
            self._known[value] = None
            form = self._constant(value) or self._computed(value, depth)
            if form is not None:
                # The one index of a size of 1 is 0, whatever the step.
                dims = value.shape.dims
                steps = (
                    0 if dim == 1 else step for step, dim in zip(form.steps, dims, strict=True)
                )
                form = Affine(form.start, tuple(steps))
            self._known[value] = form if form is not None and form.fits(value.dtype) else None
        return self._known[value]

    def parts(self, indices: ir.Value | None, depth: int = 0) -> list[Affine] | None:
        """Return the affine forms of the components of GatherND's index tuples.

        The last axis of ``indices`` holds a tuple. The form of a component is a function of the
        position of its tuple. None if a component is not proved.
        """
        if indices is None or indices.shape is None or not len(indices.shape):
            return None
        count, rank = indices.shape[-1], len(indices.shape)
        array = self.constants.get(indices, SMALL)
        if array is not None:
            candidates = [of_array(array[..., i]) for i in range(array.shape[-1])]
        elif count == 1:
            candidates = [self.of(indices, depth)]
        else:
            node = indices.producer()
            if node is None or node.domain or node.op_type != "Concat" or not is_known(node):
                return None
            if node.attributes.get_int("axis", 0) not in (-1, rank - 1):
                return None
            if any(v is None or v.shape is None or v.shape[-1] != 1 for v in node.inputs):
                return None
            candidates = [self.of(value, depth) for value in node.inputs]
        forms = [form for form in candidates if form is not None]
        if len(forms) < len(candidates):
            return None
        return [Affine(form.start, form.steps[: rank - 1]) for form in forms]

    def _constant(self, value: ir.Value) -> Affine | None:
        """Return the form of ``value`` if it is a small constant of affine elements."""
        array = self.constants.get(value, SMALL)
        return of_array(array) if array is not None else None

    def _computed(self, value: ir.Value, depth: int) -> Affine | None:
        """Return the form of ``value`` by the rule of its producer; None if there is no rule.

        Also None at the depth ``DEEP``.
        """
        node = value.producer()
        rule = RULES.get(node.op_type) if node is not None and not node.domain else None
        if node is None or rule is None or depth == DEEP or not is_known(node):
            return None
        return rule(self, node, value, depth + 1)
