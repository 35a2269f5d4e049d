"""What is told of a written file: which consumers read it, and what those asked for do not take."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.consumers.find import consumers, find_consumers
from smelt.consumers.obstacle import Outside, obstacle, outside
from smelt.ir import scope
from smelt.ir.opset import opset_of


@dataclass(frozen=True)
class Readers:
    """The consumers that take all of a model, and what others that were asked for do not take."""

    taken_by: tuple[str, ...] = ()
    outside: tuple[Outside, ...] = ()

    def lines(self) -> list[str]:
        """Return a sentence for each fact."""
        whole = [f"taken whole by {', '.join(self.taken_by)}"] if self.taken_by else []
        return [*whole, *map(str, self.outside)]

    def to_json(self) -> dict[str, object]:
        """Return the fields as plain data."""
        return {
            "taken_by": list(self.taken_by),
            "outside": [each.to_json() for each in self.outside],
        }


def readers(model: ir.Model, asked: str = "") -> Readers:
    """Return what the consumers ``asked`` for take of ``model``; all consumers without any."""
    chosen = find_consumers(asked).consumers
    if not chosen:
        return Readers(tuple(name for name in consumers() if _takes_all(name, model)))
    left = {each.name: outside(model, each) for each in chosen}
    whole = tuple(name for name, found in left.items() if not found)
    return Readers(whole, tuple(each for found in left.values() for each in found))


def _takes_all(name: str, model: ir.Model) -> bool:
    """True if the consumer takes every node; the first one that it does not take decides."""
    consumer, opset = consumers()[name], opset_of(model)
    if not consumer.opsets[0] <= opset <= consumer.opsets[1]:
        return False
    return not any(obstacle(consumer, node, opset) for node in scope.nodes(model))
