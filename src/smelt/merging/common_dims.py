"""Dims of two models under common names.

Both models name the dims of their inputs on their own. In one file a name must mean one size, and
a size may differ between the models: ``attention_mask`` has ``sequence_length`` columns in a
decoder without past, and ``past_sequence_length + 1`` with past. So each pair of texts is a name of
its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import onnx_ir as ir

from smelt.ir.symbolic_dims.dim_texts import symbolic_dim
from smelt.ir.symbolic_dims.dims import symbols_of

Side = int | str | None
"""A dim of one model: a number, the text of a symbolic dim, or None for a dim without a name."""


class CommonDims:
    """The names of dims in the merged model.

    ``common`` maps a pair of dims, one of each model, to the merged name. ``names`` maps each dim
    of a model to the merged dims that have its size whenever that model's branch runs.
    """

    def __init__(self, values: Iterable[ir.Value]) -> None:
        """Begin without names; new names avoid the symbols of ``values``, the inputs of both
        models."""
        self.known = {name for v in values for dim in _dims(v) for name in symbols_of(dim)}
        self.common: dict[tuple[int | str, int | str], str] = {}
        self.taken: set[str] = set()
        self.names: tuple[dict[Side, list[Side]], ...] = (defaultdict(list), defaultdict(list))

    def common_shape(self, first: ir.Value, second: ir.Value) -> ir.Shape | None:
        """Return the shape of an input that both models have; None if a rank is unknown."""
        if first.shape is None or second.shape is None:
            return None
        pairs = zip(_dims(first), _dims(second), strict=True)
        return _shape(
            self.pair(as_number_or_text(a), as_number_or_text(b), f"{first.name}_{axis}")
            for axis, (a, b) in enumerate(pairs)
        )

    def shape_of_one(self, value: ir.Value, index: int) -> ir.Shape | None:
        """Return the shape of an input that only the model ``index`` has, 0 or 1."""
        if value.shape is None:
            return None
        return _shape(
            self._dim_of_one(as_number_or_text(dim), index, f"{value.name}_{axis}")
            for axis, dim in enumerate(_dims(value))
        )

    def translated(self, dim: int | ir.SymbolicDim, index: int) -> list[Side]:
        """Return the merged dims that equal ``dim`` of the model ``index``, 0 or 1, in its runs.

        Empty if none is known to. An expression stays as it is if each of its symbols has the same
        name in the merged model.
        """
        own = as_number_or_text(dim)
        names = [] if own is None else list(self.names[index].get(own, ()))
        if isinstance(own, int):
            return [own, *names]
        symbols = symbols_of(dim)
        if not names and symbols and all(n in self.names[index].get(n, ()) for n in symbols):
            return [own]
        return names

    def pair(self, a: Side, b: Side, place: str) -> Side:
        """Return the merged dim for the dims ``a`` and ``b`` of one axis; ``place`` may name it."""
        if a == b and not isinstance(a, str):
            return a
        if a is None or b is None:
            return self._free_name(place, place)
        if (a, b) not in self.common:
            texts = list({text for text in (a, b) if isinstance(text, str)})
            fits = len(texts) == 1 and texts[0].isidentifier()
            self.common[a, b] = self._free_name(texts[0] if fits else place, place)
            self.names[0][a].append(self.common[a, b])
            self.names[1][b].append(self.common[a, b])
        return self.common[a, b]

    def _dim_of_one(self, own: Side, index: int, place: str) -> Side:
        """Return the merged dim for a dim that only one model has."""
        if not isinstance(own, str):
            return own
        names = self.names[index][own]
        if len(names) != 1:
            names.append(self._free_name(own if not names and own.isidentifier() else place, place))
        return names[-1]

    def _free_name(self, name: str, place: str) -> str:
        """Return ``name`` if no dim has it yet, else a new name made of ``place``."""
        if name in self.taken or name == place:
            name = re.sub(r"\W", "_", place)
            while name in self.taken | self.known:
                name += "_"
        self.taken.add(name)
        return name


def as_number_or_text(dim: int | ir.SymbolicDim) -> Side:
    """Return a dim as a number or its text."""
    return dim if isinstance(dim, int) else dim.value


def as_dim(side: Side) -> int | ir.SymbolicDim:
    """Return a number or text as a dim of onnx_ir."""
    if isinstance(side, int):
        return side
    return ir.SymbolicDim(None) if side is None else symbolic_dim(side)


def _shape(sides: Iterable[Side]) -> ir.Shape:
    """Return the shape with dims ``sides``."""
    return ir.Shape([as_dim(each) for each in sides])


def _dims(value: ir.Value) -> tuple[int | ir.SymbolicDim, ...]:
    """Return the dims of ``value``; empty if its rank is unknown."""
    return () if value.shape is None else tuple(value.shape.dims)
