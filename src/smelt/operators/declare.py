"""Declarations of operators that ONNX lacks, as values.

An ``Operator`` holds everything that the compiler needs: attributes, the rule for dtypes and shapes
of its results, a NumPy reference, and, if ONNX can express it, a body of ONNX nodes that defines
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, UsageError
from smelt.extensions import blame
from smelt.ir.build import Builder
from smelt.operators.attributes import (
    Attribute,
    Attributes,
    AttributeValue,
    int_of,
    ints_of,
    value_at,
)
from smelt.operators.declaration import check_operator

__all__ = [
    "Arguments",
    "Attribute",
    "AttributeValue",
    "Attributes",
    "Body",
    "Computed",
    "Definition",
    "Infer",
    "Operator",
    "Reference",
    "Result",
    "endless_body",
    "int_of",
    "ints_of",
]

Arguments: TypeAlias = Sequence[np.ndarray | None]
"""The arguments of a reference; None for an absent optional input."""
Computed: TypeAlias = tuple[np.ndarray, ...]
"""The results of a reference."""


@dataclass(frozen=True, slots=True)
class Result:
    """The type of one result; None where it is unknown."""

    dtype: ir.DataType | None
    shape: ir.Shape | None


Infer: TypeAlias = Callable[[Sequence[ir.Value | None], Attributes], Sequence[Result]]
"""Returns the types of the results from the inputs, whose dtype or shape may be unknown.

Raises ValueError, with one sentence, for invalid inputs.
"""

Reference: TypeAlias = Callable[[Arguments, Attributes], Sequence[np.ndarray]]
"""Computes the results for arrays, written for clarity."""

Body: TypeAlias = Callable[
    [Builder, Sequence["ir.Value | None"], Attributes], "Sequence[ir.Value] | None"
]
"""Builds the definition out of ONNX nodes.

Inputs have a known dtype, and a known rank unless the operator says ``any_rank``. The nodes may be
extension operators themselves. Returns the results; or None, having built nothing, if ONNX cannot
express this instance.
"""


_FOREIGN_TYPES = (ir.DataType.STRING, ir.DataType.COMPLEX64, ir.DataType.COMPLEX128)
"""Types that no operator of a runtime takes."""

MAX_DEPTH = 32
"""Maximum nesting of bodies; a deeper one is assumed to need its own operator."""


@dataclass(frozen=True, kw_only=True)
class Definition:
    """The name, inputs, outputs and attributes of an operator, and its definition in ONNX.

    ``inputs`` and ``outputs`` are formal names; a trailing ``?`` marks an optional one. ``version``
    is that of the domain in which it first appears. ``any_rank``: the body can be built from inputs
    of unknown rank. ``opset``: the lowest opset of the body. ``variadic``: the last input may
    repeat. ``runtime`` names a runtime that has a kernel for this operator: a model written for
    that runtime contains the operator itself, and no function with its body. ``least_ranks`` gives
    inputs the least rank that the shape rule needs.
    """

    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[Attribute, ...] = ()
    body: Body | None = None
    any_rank: bool = False
    opset: int = 13
    version: int = 1
    runtime: str = ""
    variadic: bool = False
    least_ranks: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> tuple[str, str]:
        """Return ``(domain, name)``, the key in the registry."""
        return self.domain, self.name

    def build_body(
        self, b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
    ) -> tuple[ir.Value, ...] | None:
        """Build the body with ``b`` and return its results; None, with nothing built, if there is
        none."""
        if self.body is None or b.model.opset_imports.get("", self.opset) < self.opset:
            return None
        try:
            results = self.body(b, inputs, attributes)
        except Exception as error:
            blame(error, self.body, f"the body of operator {self.domain}.{self.name}")
            raise
        if results is None:
            return None
        if not isinstance(results, Sequence) or not all(isinstance(v, ir.Value) for v in results):
            raise self.broken_body(f"it returned {str(results)[:80]}, not one value per output")
        return tuple(results)

    def broken_body(self, why: str) -> UsageError:
        """Return the error for a body whose results contradict the declaration."""
        return UsageError(
            "E646",
            f"the body of operator {self.domain}.{self.name} breaks its declaration",
            why=why,
            fix="return a tuple of values of the builder, or None where ONNX cannot express it",
        )

    def knows(self, node: ir.Node) -> bool:
        """True unless ``node`` has undeclared attributes or inputs, as a later runtime may add, or
        lacks an input."""
        declared = {attribute.name for attribute in self.attributes}
        return declared >= node.attributes.keys() and not self._has_other_inputs(node)

    def _has_other_inputs(self, node: ir.Node) -> bool:
        """True if ``node`` lacks a required input, or has more inputs than are declared."""
        is_present = [value is not None for value in node.inputs]
        is_required = [not name.endswith("?") for name in self.inputs]
        lacks_input = any(
            n and not (i < len(is_present) and is_present[i]) for i, n in enumerate(is_required)
        )
        return lacks_input or (any(is_present[len(is_required) :]) and not self.variadic)

    def check_operands(self, inputs: Sequence[ir.Value | None]) -> None:
        """Raise ValueError for an input of too low a rank, and for texts or complex numbers if
        ``runtime`` has the kernel."""
        for name, value in zip(self.inputs, inputs, strict=False):
            if value is None:
                continue
            least = self.least_ranks.get(name.rstrip("?"), 0)
            if value.shape is not None and len(value.shape) < least:
                raise ValueError(f"{name.rstrip('?')} has rank {len(value.shape)}, below {least}")
            if self.runtime and value.dtype in _FOREIGN_TYPES:
                raise ValueError(f"{name.rstrip('?')} is of type {value.dtype.name}")

    def _check_counts(self, node: ir.Node) -> None:
        """Raise InvalidModel E330 if the node has the wrong number of inputs or outputs."""
        if self.runtime:
            return
        fewest = sum(not name.endswith("?") for name in self.outputs)
        fits = fewest <= len(node.outputs) <= len(self.outputs)
        if self._has_other_inputs(node) or not fits:
            raise InvalidModel(
                "E330",
                f"{self.name} has other inputs or outputs than it is declared with",
                at=f"node {node.name!r} ({self.domain}.{self.name})",
                why=f"inputs are ({', '.join(self.inputs)}), outputs ({', '.join(self.outputs)})",
                fix="give the node these inputs and outputs",
            )

    def attributes_of(self, node: ir.Node) -> Attributes:
        """Return the attributes of ``node``, defaults filled in, in declared order.

        Raises InvalidModel E330 if one is missing, unknown or of another type, or if the numbers of
        inputs or outputs differ from the declaration.
        """
        declared = {attribute.name: attribute for attribute in self.attributes}
        self._check_counts(node)
        at = f"node {node.name!r} ({self.domain}.{self.name})"
        for name in node.attributes:
            if name not in declared:
                raise InvalidModel(
                    "E330",
                    f"{self.name} has no attribute {name!r}",
                    at=at,
                    why="the declaration of the operator does not list it",
                    fix="remove the attribute from the node",
                )
        return {name: value_at(node, attribute, at) for name, attribute in declared.items()}


@dataclass(frozen=True, kw_only=True)
class Operator(Definition):
    """An operator outside of ONNX's own domain; raises UsageError E644 if it is declared wrong."""

    infer: Infer
    reference: Reference
    summary: str = ""

    def __post_init__(self) -> None:
        check_operator(self)

    @property
    def defining(self) -> Callable[..., object]:
        """Return the function that identifies the declaration among others of its name."""
        return self.reference


def endless_body(inside: Sequence[str]) -> UsageError:
    """Return the error for bodies nested deeper than ``MAX_DEPTH``; ``inside`` names their
    operators, outer before inner."""
    return UsageError(
        "E645",
        f"the body of operator {inside[0]} needs itself, or never ends",
        at=" -> ".join(inside[-4:]),
        fix="build the body of ONNX operators, or of extension operators that have bodies",
        why="bodies are expanded until only operators of ONNX are left",
    )
