"""Loops over strided tensors: an elementwise result is one nest of loops with constant bounds.

Broadcasting, transposing, slicing and concatenating all are reads and writes with strides, so one
function emits them all. Adjacent dims that every operand walks alike become one loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from smelt.native.kernels.blocks import blocked, turned_loop
from smelt.native.types import CType
from smelt.native.writer import Writer
from smelt.program.run_sizes import Size, Undecided, is_empty, maybe_one, same, told


@dataclass(frozen=True, slots=True)
class Access:
    """How a loop nest walks one array: a stride for each loop, in elements."""

    array: str
    type: CType
    strides: tuple[int, ...]
    offset: int = 0

    def at(self, variables: Sequence[str]) -> str:
        """The element that the loop variables select, as C."""
        return f"{self.array}[{index(self.strides, variables, self.offset)}]"


def index(strides: Sequence[int], variables: Sequence[str], offset: int = 0) -> str:
    """``offset + sum(stride * variable)`` as C."""
    terms = [
        var if same(stride, 1) else f"{var} * {_factor(stride)}"
        for stride, var in zip(strides, variables, strict=True)
        if not same(stride, 0)
    ]
    if not same(offset, 0) or not terms:
        terms.insert(0, str(offset))
    return " + ".join(terms)


def _factor(stride: int) -> str:
    """A number below 0 is in parentheses, as a size of a run is by itself."""
    return f"({stride})" if isinstance(stride, int) and stride < 0 else str(stride)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a dense tensor, last dim contiguous."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def broadcast_strides(
    shape: Sequence[int],
    to: Sequence[int],
    strides: Sequence[int] | None = None,
    *,
    by_run: bool = False,
) -> tuple[int, ...]:
    """Strides that walk a tensor of ``shape``, dense unless it has ``strides``, as if it had been
    broadcast to ``to``. ``by_run``, a run decides where it has one element."""
    own = row_major(shape) if strides is None else strides
    ahead = len(to) - len(shape)
    kept = [
        _stride(size, stride, wide, by_run=by_run)
        for size, stride, wide in zip(shape, own, to[ahead:], strict=True)
    ]
    return (0,) * ahead + tuple(kept)


def _stride(size: int, stride: int, wide: int, *, by_run: bool) -> int:
    """``stride``, but 0 where a dim of ``size`` has one element for all of ``wide``."""
    if by_run and maybe_one(size) and not same(size, wide):
        return cast(int, stride * Size.named(f"({size} != 1)", 0, 1))
    return 0 if _repeats(size, wide) else stride


def _repeats(size: int, wide: int) -> bool:
    """True if a dim has one element for all of ``wide``, whatever the sizes of a run are."""
    if same(size, 1):
        return True
    if isinstance(wide, Size) and isinstance(size, int):
        raise Undecided(f"whether {told(wide)} is {size}")
    return not same(size, wide) and size == 1


def collapse(
    shape: Sequence[int], accesses: Sequence[Access]
) -> tuple[tuple[int, ...], list[Access]]:
    """The same walk in as few loops as possible."""
    sizes: list[int] = []
    columns: list[list[int]] = []
    for dim, size in enumerate(shape):
        column = [access.strides[dim] for access in accesses]
        if same(size, 1):
            continue
        joins = sizes and all(
            same(outer, inner * size) for outer, inner in zip(columns[-1], column, strict=True)
        )
        if joins:
            sizes[-1] *= size
            columns[-1] = column
        else:
            sizes.append(size)
            columns.append(column)
    walked = [
        Access(access.array, access.type, tuple(column[i] for column in columns), access.offset)
        for i, access in enumerate(accesses)
    ]
    return tuple(sizes), walked


def emit_map(
    body: Writer,
    shape: Sequence[int],
    write: Access,
    reads: Sequence[Access],
    expression: str,
    before: Sequence[str] = (),
    *,
    shared: bool = False,
) -> None:
    """``write[...] = expression`` over ``shape``, after the statements ``before`` in the loop.

    ``{0}`` in them is the element of ``reads[0]``; what they do not speak of is not read. A nest
    that is ``shared`` has one loop that is.
    """
    if is_empty(shape):
        return
    sizes, (write, *reads) = collapse(shape, (write, *reads))
    variables = [f"i{dim}" for dim in range(len(sizes))]
    # Several maps may follow each other in one function: braces keep their variables apart.
    cut = body.widest(sizes) if shared else None
    turned = turned_loop(sizes, write.strides, [read.strides for read in reads])
    if turned is not None and cut is None:
        around = blocked(body, variables, sizes, turned)
    else:
        around = body.loops(variables, sizes, cut) if sizes else body.block("")
    with around:
        for number, read in enumerate(reads):
            if any(f"{{{number}}}" in text for text in (*before, expression)):
                body.line(f"const {read.type.name} v{number} = {read.at(variables)};")
        values = [f"v{number}" for number in range(len(reads))]
        for statement in before:
            body.line(statement.format(*values))
        body.line(f"{write.at(variables)} = {expression.format(*values)};")
