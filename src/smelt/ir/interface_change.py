"""What a pass did to the interface because it was asked to, so that verification can follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import onnx_ir as ir


@dataclass(frozen=True)
class PortChange:
    """One input or output, by its index: a new name, element type, or order of axes.

    ``perm`` gives the axes of the new value as those of the old one, as in ``Transpose``.
    """

    side: Literal["input", "output"]
    index: int
    name: str | None = None
    dtype: ir.DataType | None = None
    perm: tuple[int, ...] | None = None


@dataclass(frozen=True)
class DimBound:
    """The symbolic dim ``name`` has the size ``size`` from now on."""

    name: str
    size: int


InterfaceChange = PortChange | DimBound


def ports_of(graph: ir.Graph, value: ir.Value) -> list[tuple[Literal["input", "output"], int]]:
    """Where ``value`` stands in the interface of ``graph``; an output may be listed twice."""
    found: list[tuple[Literal["input", "output"], int]] = []
    found += [("input", i) for i, each in enumerate(graph.inputs) if each is value]
    found += [("output", i) for i, each in enumerate(graph.outputs) if each is value]
    return found
