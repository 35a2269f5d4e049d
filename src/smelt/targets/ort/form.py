"""A form of a choice: where it applies, at what sizes, and how it is built."""

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
"""Returns the sizes of a match, a Miss, or None for a node that is no candidate."""


@dataclass(frozen=True)
class Form:
    """The form ``name`` of ``choice``, which may replace what ``pattern`` matches.

    ``sizes`` returns the sizes for the table; ``build`` builds the form.
    """

    choice: Choice
    name: str
    pattern: Op | OneOf
    sizes: SizesOf
    build: Build


def number(dim: object) -> Dim:
    """Return ``dim`` if it is a positive number, else None."""
    return dim if isinstance(dim, int) and dim > 0 else None


def rows_of(value: ir.Value) -> Dim:
    """Return the product of all dims of ``value`` but the last; None if unknown."""
    dims = value.shape.dims[:-1] if value.shape is not None else [None]
    sizes = [dim for dim in dims if isinstance(dim, int)]
    return math.prod(sizes) if len(sizes) == len(dims) else None
