"""Reductions with partial results in memory, whose loops are around the loop over the results.

```
for (i) to[i] = identity;
for (k) for (i) to[i] = to[i] + x[k, i];
```
"""

from __future__ import annotations

from smelt.loops import nest
from smelt.loops.algorithm import Axis, Load, Reduce, Stage, reductions, replaced
from smelt.loops.element import Element
from smelt.loops.operators import ONE
from smelt.loops.regions import Range


def start_in_memory(
    element: Element, stage: Stage, axis: Axis, range_: Range, short: bool = False
) -> nest.Statement:
    """Return the loop over ``axis`` that stores the identity of a reduction in ``range_``."""
    type_ = stage.to.type
    start = nest.Constant(next(reductions(stage.value)).monoid.start(type_), type_)
    store = nest.Store(stage.to.name, element.stored_at(stage), start, type_)
    return nest.For(axis.name, *range_, (store,), short=short)


def sum_in_memory(
    element: Element, stage: Stage, axis: Axis, range_: Range, is_reread: bool
) -> list[nest.Statement]:
    """Return a reduction whose loops are around the loop over ``axis``; results stay in memory.

    ``is_reread``: the results are in an array on the stack. The result so far is then read into a
    variable first, because ``combine`` may use it twice.
    """
    type_, reduce, at = stage.to.type, next(reductions(stage.value)), element.stored_at(stage)
    statements, value = element.operand(reduce, ONE)
    total: nest.Value = nest.Read(stage.to.name, at, type_)
    combine, total_statements = reduce.monoid.in_loop, list[nest.Statement]()
    if is_reread:
        combine, (total_statements, total) = reduce.monoid.combine, element.as_variable([], total)
    combined = nest.Store(stage.to.name, at, nest.Call(combine, (value, total), type_), type_)
    body = (*statements, *total_statements, combined)
    loops = element.loops(reduce.axes, [nest.For(axis.name, *range_, body)])
    if isinstance(stage.value, Reduce) and stage.epilogue is None:
        return loops
    load = Load(stage.to, tuple(each.at for each in stage.axes))
    statements, value = element.value(replaced(stage.value, reduce, load), ONE)
    statements += element.store(stage, value)
    return [*loops, nest.For(axis.name, *range_, tuple(statements))]
