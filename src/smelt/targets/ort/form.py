"""A form of a choice: where it may stand, at what sizes, and how it is built."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir.pattern import OneOf, Op
from smelt.ir.rule import Build, Match, Miss
from smelt.targets.ort.choices import Choice
from smelt.targets.ort.costs import Dim

Sizes = Mapping[str, Dim]
SizesOf = Callable[[Match], "Sizes | Miss | None"]
"""Those of a match; a bare None for one that was never meant."""


@dataclass(frozen=True)
class Form:
    """The form ``name`` of ``choice``, for what ``pattern`` matches.

    ``sizes`` are those at which the table is asked; ``build`` makes the form.
    """

    choice: Choice
    name: str
    pattern: Op | OneOf
    sizes: SizesOf
    build: Build


def number(dim: object) -> Dim:
    """``dim`` if it is a size above 0."""
    return dim if isinstance(dim, int) and dim > 0 else None


def rows_of(value: ir.Value) -> Dim:
    """How many rows ``value`` has, all dims but the last multiplied; None if not known."""
    dims = value.shape.dims[:-1] if value.shape is not None else [None]
    sizes = [dim for dim in dims if isinstance(dim, int)]
    return math.prod(sizes) if len(sizes) == len(dims) else None
