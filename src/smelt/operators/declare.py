"""How an operator that ONNX lacks is declared: once, as a value.

An ``Operator`` holds everything the compiler asks about it: its attributes, the rule for the
dtypes and shapes of its results, a NumPy reference, and, where ONNX can express it, a body of
ONNX nodes that is its meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, UsageError
from smelt.extensions import blame
from smelt.ir.build import Builder
from smelt.operators.declaration import check_operator

AttributeValue: TypeAlias = (
    int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | None
)
Attributes: TypeAlias = Mapping[str, AttributeValue]
Given: TypeAlias = Sequence[np.ndarray | None]
"""The arrays that a reference gets; None for an optional input that is absent."""
Computed: TypeAlias = tuple[np.ndarray, ...]
"""What a reference gives."""


def int_of(attributes: Attributes, name: str) -> int:
    """The value of an attribute that is declared as INT."""
    value = attributes[name]
    assert isinstance(value, int)
    return value


def ints_of(attributes: Attributes, name: str) -> tuple[int, ...]:
    """The values of an attribute that is declared as INTS; from JSON they come as a list."""
    value = attributes[name]
    assert isinstance(value, tuple | list)
    return tuple(int(item) for item in value)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: its ONNX type, and its default unless it is ``required``."""

    name: str
    type: ir.AttributeType
    default: AttributeValue = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """The type of one result; None where it is not known."""

    dtype: ir.DataType | None
    shape: ir.Shape | None


Infer: TypeAlias = Callable[[Sequence[ir.Value | None], Attributes], Sequence[Result]]
"""Types of the results from the inputs, of which dtype or shape may be unknown.

Raises ValueError, with one sentence, if the inputs can't be right.
"""

Reference: TypeAlias = Callable[[Given, Attributes], Sequence[np.ndarray]]
"""The results for arrays, written for clarity."""

Body: TypeAlias = Callable[
    [Builder, Sequence["ir.Value | None"], Attributes], "Sequence[ir.Value] | None"
]
"""Builds the meaning out of ONNX nodes, from inputs of known dtype, and known rank unless the
operator says ``any_rank``. The nodes may be extension operators in turn.

Returns the results, or None, having built nothing, where ONNX cannot express this instance.
"""


@dataclass(frozen=True, kw_only=True)
class Definition:
    """What an operator is called, what it takes, and its meaning in ONNX.

    ``inputs`` and ``outputs`` are formal names; a trailing ``?`` marks an optional one. ``version``
    is that of the domain in which it first appears. ``any_rank``: whether the body can be built
    from inputs of unknown rank. ``opset``: the lowest that the body is written for. ``variadic``:
    whether more inputs may follow, like the last. ``runtime`` is one that has a kernel of this
    name: what is written for it holds the operator itself, and no function.
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

    @property
    def key(self) -> tuple[str, str]:
        """``(domain, name)``, by which it is found."""
        return self.domain, self.name

    def build_body(
        self, b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
    ) -> tuple[ir.Value, ...] | None:
        """The body, built with ``b``; None, with nothing built, where there is none."""
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
            raise self.broken_body(f"it returned {str(results)[:80]}, not one value an output")
        return tuple(results)

    def broken_body(self, why: str) -> UsageError:
        """The error for a body that gives something else than its declaration says."""
        return UsageError(
            "E646",
            f"the body of operator {self.domain}.{self.name} breaks its declaration",
            why=why,
            fix="return a tuple of what the builder made, or None where ONNX cannot express it",
        )

    def knows(self, node: ir.Node) -> bool:
        """False for a node with an attribute that is not declared, as a later runtime may add."""
        return {attribute.name for attribute in self.attributes} >= node.attributes.keys()

    def _check_counts(self, node: ir.Node) -> None:
        given = [value is not None for value in node.inputs]
        needed = [not name.endswith("?") for name in self.inputs]
        lacks = any(n and not (i < len(given) and given[i]) for i, n in enumerate(needed))
        if self.runtime:
            return
        more = any(given[len(needed) :]) and not self.variadic
        if lacks or more or len(node.outputs) > len(self.outputs):
            raise InvalidModel(
                "E330",
                f"{self.name} has other inputs or outputs than it is declared with",
                at=f"node {node.name!r} ({self.domain}.{self.name})",
                why=f"it takes ({', '.join(self.inputs)}) and returns ({', '.join(self.outputs)})",
            )

    def attributes_of(self, node: ir.Node) -> Attributes:
        """The attributes of ``node``, defaults filled in, in declared order.

        Raises InvalidModel E330 if one is missing, unknown or of another type, or if the node has
        other inputs or outputs than are declared.
        """
        declared = {attribute.name: attribute for attribute in self.attributes}
        self._check_counts(node)
        at = f"node {node.name!r} ({self.domain}.{self.name})"
        for name in node.attributes:
            if name not in declared:
                raise InvalidModel("E330", f"{self.name} has no attribute {name!r}", at=at)
        return {name: _value(node, attribute, at) for name, attribute in declared.items()}


@dataclass(frozen=True, kw_only=True)
class Operator(Definition):
    """An operator of another domain than ONNX's own; UsageError E644 if it is declared wrong."""

    infer: Infer
    reference: Reference
    summary: str = ""

    def __post_init__(self) -> None:
        check_operator(self)

    @property
    def defining(self) -> Callable[..., object]:
        """The function of its author, which tells one declaration from another of its name."""
        return self.reference


def _value(node: ir.Node, attribute: Attribute, at: str) -> AttributeValue:
    given = node.attributes.get(attribute.name)
    if given is None:
        if attribute.required:
            raise InvalidModel("E330", f"attribute {attribute.name!r} is missing", at=at)
        return attribute.default
    if given.type != attribute.type or given.is_ref():
        what = f"attribute {attribute.name!r} is not of type {attribute.type.name}"
        raise InvalidModel("E330", what, at=at)
    value: AttributeValue | list[int] | list[float] | list[str] = given.value
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]
