"""``draw(seed)``: one valid random model."""

from __future__ import annotations

import random

import onnx_ir as ir
from onnx import defs
from random_graphs import (
    attention,
    control,
    edges,
    elementwise,
    formulas,
    networks,
    recurrent,
    sequences,
    spelled_out,
    structure,
    types,
)
from random_graphs.catalogue import from_a_rule
from random_graphs.draft import Draft, Move, NoMove

from smelt.ir import scope

FAMILIES: dict[str, tuple[int, list[Move]]] = {
    "elementwise": (6, elementwise.MOVES),
    "structure": (5, structure.MOVES),
    "networks": (5, networks.MOVES),
    "formulas": (4, formulas.MOVES),
    "catalogue": (3, [from_a_rule]),
    "attention": (1, attention.MOVES),
    "control": (1, control.MOVES),
    "types": (0, types.MOVES),
    "edges": (0, edges.MOVES),
    "sequences": (0, sequences.MOVES),
    "spelled out": (0, spelled_out.MOVES),
    "recurrent": (0, recurrent.MOVES),
}
"""How often each family is drawn, and its moves; those of 0 where they are in focus."""

OPSETS = range(13, defs.onnx_opset_version() + 1)
"""All that smelt takes without raising them."""

FOCUSED = (17, 23)
"""With axes as attributes, and with all operators that rules make; runtimes are fast at both."""

FOCUS = 25
"""How often the family in focus is drawn."""


def draw(seed: int, focus: str = "", opset: int | None = None) -> ir.Model:
    """A model of 5 to 25 moves, all of it alive, many of them of the family in ``focus``.

    Without an ``opset`` that is drawn, too: one of two, if there is a focus. Equal seeds give equal
    models.
    """
    rng = random.Random(seed)
    d = Draft(rng, rng.choice(FOCUSED if focus else OPSETS) if opset is None else opset)
    weights = [FOCUS if name == focus else weight for name, (weight, _) in FAMILIES.items()]
    for _ in range(rng.randint(5, 25)):
        (family,) = rng.choices([moves for _, moves in FAMILIES.values()], weights)
        try:
            rng.choice(family)(d)
        except NoMove:
            continue
    _choose_outputs(d)
    if focus == "edges" and d.chance(0.3):
        constants = list(d.model.graph.initializers.values())
        d.model.graph.outputs.extend(d.rng.sample(constants, min(len(constants), 1)))
    return _drop_the_dead(d.model)


def _choose_outputs(d: Draft) -> None:
    """Some results that nobody reads, and some that others read."""
    graph = d.model.graph
    made = [v for v in d.values if v.producer() is not None and v.producer().graph is graph]
    ends = [value for value in made if not value.uses()]
    chosen = d.rng.sample(ends, min(len(ends), d.rng.randint(1, 6)))
    inner = [value for value in made if value.uses()]
    chosen += d.rng.sample(inner, min(len(inner), d.rng.choice([0, 0, 1, 2])))
    graph.outputs.extend(chosen or [d.op("Identity", d.values[0])])


def _drop_the_dead(model: ir.Model) -> ir.Model:
    """The model without what no output needs, so that nothing is gained by removing it."""
    needed: set[ir.Node] = set()
    open_ = [value.producer() for value in model.graph.outputs]
    while open_:
        node = open_.pop()
        if node is not None and node not in needed:
            needed.add(node)
            open_ += [value.producer() for value in node.inputs if value is not None]
            open_ += [v.producer() for below in scope.subgraphs(node) for v in below.outputs]
    for graph in list(scope.graphs(model)):
        graph.remove([node for node in graph if node not in needed])
    alive = ir.from_proto(ir.to_proto(model))
    for graph in scope.graphs(alive):
        for name, value in list(graph.initializers.items()):
            if scope.is_dead(value):
                del graph.initializers[name]
    return alive
