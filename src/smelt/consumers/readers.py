"""The report about a written file: which consumers support it, and what others do not support."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import onnx_ir as ir

from smelt.consumers.consumer import Consumer
from smelt.consumers.find import consumers, find_consumers
from smelt.consumers.obstacle import Outside, key_of, obstacle, unsupported_nodes
from smelt.ir import scope
from smelt.ir.opset import opset_of


@dataclass(frozen=True)
class Readers:
    """The report about one model.

    ``taken_by``: the consumers that support the whole model. ``outside``: the nodes that requested
    consumers do not support. ``defects``: known defects of requested consumers, on any model.
    """

    taken_by: tuple[str, ...] = ()
    outside: tuple[Outside, ...] = ()
    defects: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return a sentence for each fact."""
        whole = [f"supported by {', '.join(self.taken_by)}"] if self.taken_by else []
        return [
            *whole,
            *map(str, self.outside),
            *(f"known defect of {defect}" for defect in self.defects),
        ]

    def to_json(self) -> dict[str, object]:
        """Return the fields as plain data."""
        return {
            "taken_by": list(self.taken_by),
            "outside": [obstacles.to_json() for obstacles in self.outside],
            "defects": list(self.defects),
        }


def readers(model: ir.Model, names_text: str = "") -> Readers:
    """Return the report about ``model`` for the consumers in ``names_text``, the value of
    ``--for``.

    If it is empty, the report lists the consumers that support the whole model.
    """
    requested = find_consumers(names_text).consumers
    if not requested:
        names = {key_of(node) for node in scope.nodes(model)}
        by_name = consumers().items()
        return Readers(tuple(name for name, each in by_name if _takes_all(each, model, names)))
    obstacles = {consumer.name: unsupported_nodes(model, consumer) for consumer in requested}
    supporting = tuple(name for name, items in obstacles.items() if not items)
    defects = tuple(f"{item.name}: {defect}" for item in requested for defect in item.defects)
    return Readers(supporting, tuple(chain.from_iterable(obstacles.values())), defects)


def _takes_all(consumer: Consumer, model: ir.Model, names: set[str]) -> bool:
    """True if ``consumer`` supports every node of ``model``, which has the operators ``names``.

    Operators are compared first. Nodes are checked one by one only if all operators are supported
    and the consumer limits their forms.
    """
    opset = opset_of(model)
    if not consumer.opsets[0] <= opset <= consumer.opsets[1] or names & consumer.refused.keys():
        return False
    if consumer.operators is None:
        return not any("::" in name for name in names)
    if names - consumer.operators.keys() - {"Constant"}:
        return False
    return not any(obstacle(consumer, node, opset) for node in scope.nodes(model))
