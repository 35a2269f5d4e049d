"""Lower the size cases of a function to nested Ifs that compare sizes of the inputs."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.frontends.jax import compat
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.open_sizes.size_advice import SizeCase
from smelt.frontends.jax.open_sizes.size_examples import sides
from smelt.frontends.jax.open_sizes.traced_cases import Case, Choice, Leaf
from smelt.frontends.jax.operand import Operand


def lower(
    cx: Lowering, case: Case, operands: Sequence[Operand], types: Sequence[compat.Aval]
) -> list[Operand]:
    """Return the results of ``case`` for the inputs ``operands``; ``types`` are the results' types.

    A choice becomes ``If(first condition, first case, choice among the other cases)``.
    """
    if isinstance(case, Leaf):
        # JAX cannot compare dims of different scopes, so use the dims of this case.
        inputs = [
            Operand(operand.value, tuple(variable.aval.shape))
            for operand, variable in zip(operands, case.closed.jaxpr.invars, strict=True)
        ]
        results = cx.run(case.closed.jaxpr, case.closed.consts, inputs)
        atoms = case.closed.jaxpr.outvars
        return [cx.broadcast_operand(r, atom) for r, atom in zip(results, atoms, strict=True)]
    if len(case.cases) == 1:
        return lower(cx, case.cases[0], operands, types)
    other_cases = Choice(case.conditions[1:], case.cases[1:])
    graphs = {}
    for name, inner in (("then_branch", case.cases[0]), ("else_branch", other_cases)):
        branch = cx.branch(name=name)
        values = [result.value for result in lower(branch, inner, operands, types)]
        graphs[name] = branch.finish(list(zip(values, types, strict=True)))
    is_first_case = _condition_value(cx, case.conditions[0])
    values_of_results = cx.ops("If", is_first_case, outputs=len(types), **graphs)
    pairs = zip(values_of_results, types, strict=True)
    return [Operand(value, tuple(aval.shape)) for value, aval in pairs]


def _condition_value(cx: Lowering, condition: SizeCase) -> ir.Value:
    """Return a scalar bool value: whether the sizes of this run satisfy ``condition``."""
    size, relation, bound = sides(condition.text)
    operands = cx.symbols.value(size), cx.symbols.value(bound)
    build = cx.shared.builder.op
    if relation in ("==", "!="):
        equal = build("Equal", *operands)
        answer = build("Not", equal) if relation == "!=" else equal
    else:
        answer = build({"<=": "LessOrEqual", ">=": "GreaterOrEqual"}[relation], *operands)
    return build("Squeeze", answer)
