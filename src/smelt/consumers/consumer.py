"""What a consumer is: the limits of a program that reads ONNX files, with their sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

Version: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Takes:
    """The forms of one operator that a consumer takes; a field at its default is no limit.

    ``constant``: the inputs that must be constants. ``ranks``: lowest and highest rank of the first
    input. ``attributes``: allowed values by name; an absent attribute has the default of ONNX.
    ``types``: element types of the first input. ``gaps``: an input may be absent before others.
    ``newest``: the newest version of the operator. ``present``: optional inputs that must be there.
    ``values``: allowed elements of a constant input. ``written`` and ``unwritten``: attributes that
    the file must name, or must not name, though they have ONNX's default. ``samples``: an operand
    may be a constant of several samples. ``otherwise``: another form that is taken as well.
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
    """Return a table of operators: those named in ``text`` in any form, others in ``forms``."""
    return {**dict.fromkeys(text.split(), Takes()), **forms}


@dataclass(frozen=True)
class Consumer:
    """A program that reads ONNX files.

    ``source``: the document, checker or measurement that the rows are from. ``opsets``: lowest and
    highest ONNX opset. ``ir_version``: the highest version of the file format. ``operators``: what
    it takes, by operator (``domain::Name`` for other domains); None for every operator of ONNX but
    those ``refused``, a table from operator to the reason; such a consumer has no other limits.
    ``types``: element types of values that are no constants. ``max_rank``: the most dims of a
    value. ``fixed_sizes``: it takes no node with an open size. ``narrow_integers``: it computes in
    int32, not int64. ``without``: passes of the default pipeline whose results it handles badly.
    ``prefers``: passes, as pipeline text, that make the forms that it handles best.
    ``is_onnx_runtime``: it computes the operators of ``runtime_defects.py`` wrong, so that others
    replace them. ``defects``: what it is known to do badly, each with its source. ``at``: returns
    the consumer as of a version, for ``NAME>=1.18``.
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
