"""Loop nests over strided tensors; an elementwise result is one nest with constant bounds.

Broadcasts, transposes, slices and concatenations are strided reads and writes, so one function
emits them all. Adjacent dims with matching strides in all operands become one loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from smelt.native.emit.writer import Writer
from smelt.native.kernels.blocks import blocked, transposed_loop
from smelt.native.types import CType
from smelt.program.run_sizes import Size, Undecided, is_empty, maybe_one, same, with_bounds


@dataclass(frozen=True, slots=True)
class Access:
    """The reading or writing of one array in a loop nest: a stride per loop, in elements."""

    array: str
    type: CType
    strides: tuple[int, ...]
    offset: int = 0

    def at(self, variables: Sequence[str]) -> str:
        """Return the C of the element that the loop variables select: ``x0[i0 * 4 + i1]``."""
        return f"{self.array}[{index(self.strides, variables, self.offset)}]"


def index(strides: Sequence[int], variables: Sequence[str], offset: int = 0) -> str:
    """Return ``offset + sum(stride * variable)`` as C: ``i0 * 4 + i1``, "0" if no term is left."""
    terms = [
        var if same(stride, 1) else f"{var} * {_factor(stride)}"
        for stride, var in zip(strides, variables, strict=True)
        if not same(stride, 0)
    ]
    if not same(offset, 0) or not terms:
        terms.insert(0, str(offset))
    return " + ".join(terms)


def _factor(stride: int) -> str:
    """Return a stride as a factor; a negative number gets parentheses: ``4`` or ``(-1)``."""
    return f"({stride})" if isinstance(stride, int) and stride < 0 else str(stride)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor: ``(12, 4, 1)`` for the shape ``(2, 3, 4)``."""
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
    """Return the strides of a tensor of ``shape`` broadcast to ``to``.

    The tensor is dense unless ``strides`` is given. With ``by_run``, a run-time size may turn out
    to be 1, and its stride is then 0 in that run.
    """
    dense_strides = row_major(shape) if strides is None else strides
    added_dims = len(to) - len(shape)
    aligned = [
        _stride(size, stride, result_size, by_run=by_run)
        for size, stride, result_size in zip(shape, dense_strides, to[added_dims:], strict=True)
    ]
    return (0,) * added_dims + tuple(aligned)


def _stride(size: int, stride: int, result_size: int, *, by_run: bool) -> int:
    """Return ``stride``, or 0 if a dim of ``size`` is broadcast to ``result_size``.

    With ``by_run``, a size that only a run decides is compared with 1 in the C.
    """
    if by_run and maybe_one(size) and not same(size, result_size):
        return cast(int, stride * Size.named(f"({size} != 1)", 0, 1))
    return 0 if _repeats(size, result_size) else stride


def _repeats(size: int, result_size: int) -> bool:
    """True if a dim of ``size`` 1 is repeated to give a dim of ``result_size`` elements.

    Raises Undecided if that depends on a run-time size.
    """
    if same(size, 1):
        return True
    if isinstance(result_size, Size) and isinstance(size, int):
        raise Undecided(f"whether {with_bounds(result_size)} is {size}")
    return not same(size, result_size) and size == 1


def collapse(
    shape: Sequence[int], accesses: Sequence[Access]
) -> tuple[tuple[int, ...], list[Access]]:
    """Return the shape and accesses of the same elements in as few loops as possible.

    Dims of size 1 are dropped. Neighboring dims whose strides match in all accesses are merged.
    """
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
    collapsed = [
        Access(
            access.array, access.type, tuple(column[number] for column in columns), access.offset
        )
        for number, access in enumerate(accesses)
    ]
    return tuple(sizes), collapsed


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
    """Write ``write[...] = expression`` for all elements of ``shape``.

    ``{0}`` in ``expression``, and in the statements ``before`` it, is the element of ``reads[0]``;
    reads that no text mentions are left out. With ``shared``, one loop is split into shards.

    ```
    for (ptrdiff_t i0 = 0; i0 < 6; ++i0) {
        const float v0 = x0[i0];
        y0[i0] = v0 > 0 ? v0 : 0;
    }
    ```
    """
    if is_empty(shape):
        return
    sizes, (write, *reads) = collapse(shape, (write, *reads))
    variables = [f"i{dim}" for dim in range(len(sizes))]
    # A function may hold several maps: braces give each its own variables.
    shared_loop = body.widest(sizes) if shared else None
    read_loop = transposed_loop(sizes, write.strides, [read.strides for read in reads])
    if read_loop is not None and shared_loop is None:
        nest = blocked(body, variables, sizes, read_loop)
    else:
        nest = body.loops(variables, sizes, shared_loop) if sizes else body.block("")
    with nest:
        for number, read in enumerate(reads):
            if any(f"{{{number}}}" in text for text in (*before, expression)):
                body.line(f"const {read.type.name} v{number} = {read.at(variables)};")
        values = [f"v{number}" for number in range(len(reads))]
        for statement in before:
            body.line(statement.format(*values))
        body.line(f"{write.at(variables)} = {expression.format(*values)};")
