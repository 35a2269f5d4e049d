"""What a consumer is: the limits of a program that reads ONNX files, with their sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

Version: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Takes:
    """The form of one operator that a consumer supports; a field at its default is no limit.

    ``constant``: the inputs that must be constants, by index. ``present``: optional inputs that
    must be present. ``values``: allowed elements of a constant input, by index. ``gaps``: an
    optional input may be missing before a present one. ``samples``: a constant operand may have a
    batch of several samples. ``ranks``: lowest and highest rank of the first input. ``types``:
    element types of the first input. ``attributes``: allowed values by name; a missing attribute
    has ONNX's default. ``written`` and ``unwritten``: attributes that must or must not be in the
    file, even with ONNX's default. ``newest``: the newest version of the operator. ``otherwise``:
    another form that is supported as well.
    """

    constant: tuple[int, ...] = ()
    present: tuple[int, ...] = ()
    values: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()
    samples: bool = True
    otherwise: Takes | None = None
    ranks: tuple[int, int] | None = None
    attributes: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    types: frozenset[ir.DataType] | None = None
    gaps: bool = True
    newest: int | None = None


def takes(text: str, **forms: Takes) -> dict[str, Takes]:
    """Return ``Consumer.operators``: any form of the operators in ``text``, and ``forms``."""
    return {**dict.fromkeys(text.split(), Takes()), **forms}


@dataclass(frozen=True)
class Consumer:
    """A program that reads ONNX files.

    ``source``: the document, checker or measurement from which the limits are. ``opsets``: lowest
    and highest ONNX opset. ``ir_version``: the highest version of the file format. ``operators``:
    the supported form of each operator (``domain::Name`` for other domains), or None for all of
    ONNX except ``refused``, a table from operator to reason. ``types``: element types of values
    that are no constants. ``max_rank``: the most dims of a value. ``fixed_sizes``: it supports no
    node with an open size. ``narrow_integers``: it computes int64 in int32. ``without``: passes of
    the default pipeline whose results it handles badly. ``prefers``: passes, as pipeline text, that
    make the forms that it handles best. ``is_onnx_runtime``: it computes the operators of
    ``runtime_defects.py`` wrong, so that others replace them. ``defects``: known mistakes, each
    with its source. ``at``: returns the consumer in a version, for ``NAME>=1.18``.
    """

    name: str
    summary: str
    source: str
    opsets: tuple[int, int] = (1, 10**6)
    ir_version: int | None = None
    operators: Mapping[str, Takes] | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    types: frozenset[ir.DataType] | None = None
    max_rank: int | None = None
    fixed_sizes: bool = False
    narrow_integers: bool = False
    without: tuple[str, ...] = ()
    prefers: str = ""
    is_onnx_runtime: bool = False
    defects: tuple[str, ...] = ()
    at: Callable[[Version], Consumer] | None = None
