"""What is told of a written file: which consumers read it, and what those asked for do not take."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.consumers.consumer import Consumer
from smelt.consumers.find import consumers, find_consumers
from smelt.consumers.obstacle import Outside, key_of, obstacle, outside
from smelt.ir import scope
from smelt.ir.opset import opset_of


@dataclass(frozen=True)
class Readers:
    """The consumers that take all of a model, and what others that were asked for do not take.

    ``defects``: what those asked for are known to do badly, on any model.
    """

    taken_by: tuple[str, ...] = ()
    outside: tuple[Outside, ...] = ()
    defects: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return a sentence for each fact."""
        whole = [f"taken whole by {', '.join(self.taken_by)}"] if self.taken_by else []
        return [*whole, *map(str, self.outside), *(f"known of {each}" for each in self.defects)]

    def to_json(self) -> dict[str, object]:
        """Return the fields as plain data."""
        return {
            "taken_by": list(self.taken_by),
            "outside": [each.to_json() for each in self.outside],
            "defects": list(self.defects),
        }


def readers(model: ir.Model, asked: str = "") -> Readers:
    """Return what the consumers ``asked`` for take of ``model``; all consumers without any."""
    chosen = find_consumers(asked).consumers
    if not chosen:
        names = {key_of(node) for node in scope.nodes(model)}
        known = consumers().items()
        return Readers(tuple(name for name, each in known if _takes_all(each, model, names)))
    left = {each.name: outside(model, each) for each in chosen}
    whole = tuple(name for name, found in left.items() if not found)
    defects = tuple(f"{each.name}: {defect}" for each in chosen for defect in each.defects)
    return Readers(whole, tuple(each for found in left.values() for each in found), defects)


def _takes_all(consumer: Consumer, model: ir.Model, names: set[str]) -> bool:
    """True if ``consumer`` takes every node; ``names`` are the operators of the model.

    Nodes are looked at only if it has all operators, but not in every form.
    """
    opset = opset_of(model)
    if not consumer.opsets[0] <= opset <= consumer.opsets[1] or names & consumer.refused.keys():
        return False
    if consumer.operators is None:
        return not any("::" in name for name in names)
    if names - consumer.operators.keys() - {"Constant"}:
        return False
    return not any(obstacle(consumer, node, opset) for node in scope.nodes(model))
