"""Blocks of results in registers: chains of multiply-adds that read each element once.

```
vec s0 = b, s1 = b;
vec v0 = x[0];  s0 = w0 * v0 + s0;
vec v1 = x[1];  s0 = w1 * v1 + s0;  s1 = w0 * v1 + s1;
```
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from smelt.loops import nest
from smelt.loops.algorithm import (
    Apply,
    Axis,
    Expression,
    Load,
    Reduce,
    Stage,
    at_place,
    loads,
)
from smelt.loops.element import Element
from smelt.loops.operators import LANES, MULTIPLY_ADD, ONE, Operator
from smelt.program.run_sizes import Size

BROADCAST = Operator("broadcast", "{0} - __extension__(vec){{ 0 }}", lambda v: v)
"""A number in each lane. ``+ 0`` would be an addition, because it changes -0; ``- 0`` is none."""


def broadcast_factors(element: Element, stage: Stage) -> list[nest.Statement]:
    """Return the declarations of vectors that hold one number in all lanes.

    The numbers are those that are the same in all loops of ``stage``: its start and, without a
    reduction, its factors.
    """
    if isinstance(stage.value, Reduce):
        assert stage.value.start is not None
        return _broadcast(element, [stage.value.start])
    return _broadcast(element, loads(stage.value))


def block(element: Element, stage: Stage, axis: Axis) -> list[nest.Statement]:
    """Return the statements that compute and store the results at all indices of ``axis``.

    The body of a reduction is computed for all results in each step of its loops.
    """
    assert isinstance(axis.extent, int)
    value = stage.value
    sums = [nest.Name(f"s{row}", LANES) for row in range(axis.extent)]
    chain = value.body if isinstance(value, Reduce) else value
    start = value.start if isinstance(value, Reduce) else _chain(value)[0]
    assert isinstance(start, Load)
    first = element.broadcast[start]
    statements: list[nest.Statement] = [
        nest.Declare(name.name, first, element.type, LANES, changes=True) for name in sums
    ]
    if isinstance(value, Reduce):
        inner = _broadcast(element, loads(chain), keep=True)
        inner += _multiply(element, chain, axis, sums)
        statements += element.loops(value.axes, inner)
    else:
        statements += _multiply(element, chain, axis, sums)
    for row, name in enumerate(sums):
        statements += element.store(stage, name, LANES, {axis.name: row})
    return statements


def _broadcast(
    element: Element, read: Iterable[Load], *, keep: bool = False
) -> list[nest.Statement]:
    """Return the declarations of vectors for the loads ``read`` that do not depend on the innermost
    axis.

    ``keep``: tell the compiler to keep each vector in a register.
    """
    statements = list[nest.Statement]()
    for load in dict.fromkeys(read):
        if not any(isinstance(each, Size) and element.along in each.atoms for each in load.index):
            _, number = element.value(load, ONE)
            name = f"w{len(element.broadcast)}"
            vector = nest.Call(BROADCAST, (number,), element.type, LANES)
            statements.append(nest.Declare(name, vector, element.type, LANES, changes=keep))
            statements += [nest.Keep(name)] if keep else []
            element.broadcast[load] = nest.Name(name, LANES)
    return statements


def _multiply(
    element: Element, chain: Expression, axis: Axis, sums: list[nest.Name]
) -> list[nest.Statement]:
    """Return the multiply-adds of all rows, each after the read of its element."""
    statements, steps = list[nest.Statement](), dict[Load, list[tuple[int, Load]]]()
    terms = _chain(chain)[1]
    for row in range(len(sums)):
        for weight, load in terms:
            here = cast(Load, at_place(load, {axis.name: row}))
            steps.setdefault(here, []).append((row, weight))
    for number, load in enumerate(sorted(steps, key=_constants)):
        _, read = element.value(load, LANES)
        v = nest.Name(f"v{number}", LANES)
        shared = len(steps[load]) > 1
        statements.append(nest.Declare(v.name, read, element.type, LANES, changes=shared))
        statements += [nest.Keep(v.name)] if shared else []
        for row, weight in steps[load]:
            operands = (element.broadcast[weight], v, sums[row])
            sum_ = nest.Call(MULTIPLY_ADD, operands, element.type, LANES)
            statements.append(nest.Assign(sums[row].name, sum_))
    return statements


def _chain(value: Expression) -> tuple[Expression, list[tuple[Load, Load]]]:
    """Return the start of a chain of multiply-adds, and the factors of each in order."""
    terms = list[tuple[Load, Load]]()
    while isinstance(value, Apply):
        assert value.operator is MULTIPLY_ADD
        weight, load, value = value.operands
        assert isinstance(weight, Load)
        assert isinstance(load, Load)
        terms.insert(0, (weight, load))
    return value, terms


def _constants(load: Load) -> tuple[int, ...]:
    """Return the constant terms of a read's indices: (0, 1) for ``x[i, j + 1]``.

    Reads in this order follow one another in memory.
    """
    return tuple(each.terms.get((), 0) if isinstance(each, Size) else each for each in load.index)
