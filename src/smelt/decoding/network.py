"""What a run needs to know of a decoder's graph: its inputs, its outputs and their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from smelt.decoding.ports import Cache, Ports

OPEN = "?"
"""The name of a dim that has no name and no size."""


@dataclass(frozen=True)
class Network:
    """The inputs and outputs of an optimized decoder.

    ``inputs`` has the dims of each input: sizes, or names of open sizes. ``outputs`` are the names
    of all outputs. Tokens are below ``vocabulary``. ``appended`` are the past inputs whose outputs
    have the new rows alone, with rows first. ``positions`` is the number of positions that the
    model knows, None for any number. ``notes`` say what became of quantized weights.
    """

    ports: Ports
    inputs: Mapping[str, tuple[int | str, ...]]
    outputs: tuple[str, ...]
    vocabulary: int
    appended: frozenset[str] = frozenset()
    positions: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def carried(self) -> list[str]:
        """The names of the outputs besides the logits."""
        return [name for name in self.outputs if name != self.ports.logits]

    def dim(self, axis: int) -> int | str:
        """Return the size of dim ``axis`` of the tokens, B or S, or its name if it is open."""
        return self.inputs[self.ports.tokens][axis]

    def to_json(self) -> dict[str, Any]:
        """Return a document that ``from_json`` reads."""
        return asdict(self) | {"appended": sorted(self.appended)}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Network:
        """Return the network of a document; raises KeyError or TypeError for others."""
        ports = dict(document["ports"])
        ports["caches"] = tuple(Cache(**cache) for cache in ports["caches"])
        return Network(
            ports=Ports(**ports),
            inputs={name: tuple(dims) for name, dims in document["inputs"].items()},
            outputs=tuple(document["outputs"]),
            vocabulary=document["vocabulary"],
            appended=frozenset(document["appended"]),
            positions=document["positions"],
            notes=tuple(document["notes"]),
        )
