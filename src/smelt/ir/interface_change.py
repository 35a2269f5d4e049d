"""Changes that a pass made to the interface on request, recorded so that verification can
follow."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import onnx_ir as ir

from smelt.ir.opsets.raise_opset import LOWEST_GOAL


@dataclass(frozen=True)
class PortChange:
    """A change of one input or output, by index: a new name, element type, or order of axes.

    ``perm`` gives the axes of the new value in terms of the old one, as in ``Transpose``.
    ``columns`` are the dictionary keys of a former list of dictionaries, now a tensor with one
    column per key. ``step`` are the scale and zero point of a float that became an integer.
    """

    side: Literal["input", "output"]
    index: int
    name: str | None = None
    dtype: ir.DataType | None = None
    perm: tuple[int, ...] | None = None
    columns: tuple[int | str, ...] | None = None
    step: tuple[float, int] | None = None

    def __str__(self) -> str:
        facts = [f"is called {self.name!r}"] if self.name is not None else []
        facts += [f"is {self.dtype.name.lower()}"] if self.dtype is not None else []
        facts += [f"has steps of {self.step[0]:.6g}, zero {self.step[1]}"] if self.step else []
        facts += [f"has its axes in the order {list(self.perm)}"] if self.perm is not None else []
        facts += [f"has columns for {', '.join(map(str, self.columns))}"] if self.columns else []
        return f"{self.side} {self.index} {', '.join(facts)}"


@dataclass(frozen=True)
class DimBound:
    """The symbolic dim ``name`` was bound to ``size``."""

    name: str
    size: int

    def __str__(self) -> str:
        return f"dim {self.name} bound to {self.size}"


@dataclass(frozen=True)
class OpsetChanged:
    """The ONNX opset was raised or lowered from ``before`` to ``after``, for the passes
    ``needed_by`` if any."""

    before: int
    after: int
    needed_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        reasons = ", ".join(self.needed_by)
        if not reasons and self.before < self.after and self.after == LOWEST_GOAL:
            reasons = "the lowest that rules know"
        return f"opset {self.before} -> {self.after}" + (f" ({reasons})" if reasons else "")


InterfaceChange = PortChange | DimBound | OpsetChanged


def to_json(change: InterfaceChange) -> dict[str, Any]:
    """Return the change as a dict of plain data, including its ``text``."""
    known = {name: value for name, value in asdict(change).items() if value is not None}
    if isinstance(change, PortChange) and change.dtype is not None:
        known["dtype"] = change.dtype.name
    return {"change": KINDS[type(change)], **known, "text": str(change)}


KINDS = {PortChange: "port", DimBound: "dim", OpsetChanged: "opset"}


def ports_of(graph: ir.Graph, value: ir.Value) -> list[tuple[Literal["input", "output"], int]]:
    """Return the sides and indices at which ``value`` is an input or output of ``graph``.

    An output may be listed twice.
    """
    ports: list[tuple[Literal["input", "output"], int]] = []
    ports += [("input", i) for i, port in enumerate(graph.inputs) if port is value]
    ports += [("output", i) for i, port in enumerate(graph.outputs) if port is value]
    return ports
