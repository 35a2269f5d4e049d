"""At which opsets a graph has to be tried, since operators have another form there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import onnx_ir as ir
from onnx import defs

from smelt.ir import scope
from smelt.ir.signature import DOMAINS, signature_of

OPSETS = range(13, defs.onnx_opset_version() + 1)
"""What smelt takes without raising it, up to the newest that onnx knows."""


def try_each_form(known: Sequence[ir.Model], run: Callable[[int], ir.Model | None]) -> None:
    """Call ``run`` with opsets other than that of ``known``, a model and what is made of it.

    ``run`` returns what is made of the model at an opset, None where it is no model. Of opsets
    that say the same of every operator in sight, for the types in sight, one is tried. What comes
    into sight there counts at the others, too.
    """
    models, tried = list(known), [known[0].opset_imports[""]]
    operators, types = _in_sight(models)
    while True:
        seen = {_forms(opset, operators, types) for opset in tried}
        opset = next((o for o in OPSETS if _forms(o, operators, types) not in seen), None)
        if opset is None:
            return
        tried.append(opset)
        made = run(opset)
        if made is not None:
            models.append(made)
            operators, types = _in_sight(models)


def _in_sight(
    models: Sequence[ir.Model],
) -> tuple[tuple[tuple[str, str], ...], frozenset[ir.DataType]]:
    """The operators of ``models`` that onnx describes, and the types of their values."""
    operators, types = set(), set()
    for model in models:
        types |= {value.dtype for value in model.graph.inputs}
        for node in scope.nodes(model):
            types |= {value.dtype for value in node.outputs}
            if node.domain in DOMAINS:
                operators.add((node.op_type, node.domain))
    return tuple(sorted(operators)), frozenset(t for t in types if t is not None)


def _forms(
    opset: int, operators: tuple[tuple[str, str], ...], types: frozenset[ir.DataType]
) -> tuple[object, ...]:
    return tuple(_form(name, domain, opset, types) for name, domain in operators)


@cache
def _form(name: str, domain: str, opset: int, types: frozenset[ir.DataType]) -> object:
    """What ``opset`` says of an operator, equal where it is the same; None where it has none."""
    said = signature_of(name, opset, domain)
    if said is None:
        return None
    formals = tuple((f.optional, f.variadic, f.types & types) for f in said.inputs + said.outputs)
    counts = (said.min_inputs, said.max_inputs, said.min_outputs, said.max_outputs)
    return formals, counts, frozenset(said.attributes.items()), said.required
