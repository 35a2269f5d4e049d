"""Operators that read or write by index.

A negative index counts from the end. An index out of range reads the nearest element, or writes
nothing, so no access leaves a tensor. Programs that report a status then report a failure.
"""

from __future__ import annotations

import math

from smelt.native.kernels.elementwise import combine
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.nest import emit_map, index, row_major
from smelt.native.kernels.operand import Operand
from smelt.native.types import CType
from smelt.program.run_sizes import is_empty
from smelt.program.storage import Needs


def declare_position(
    cx: KernelContext, indices: Operand, at: str, size: int, *, clamp: bool
) -> None:
    """Declare ``at``: the element of ``indices`` as a position in a dim of ``size``.

    ```
    ptrdiff_t at = (ptrdiff_t)x1[j];
    at = at < 0 ? at + 10 : at;
    at = at < 0 ? 0 : at > 9 ? 9 : at;
    ```
    """
    if clamp:
        cx.require_nonempty(size)
    cx.body.line(f"ptrdiff_t at = (ptrdiff_t){indices.name}[{at}];")
    if indices.type.signed:
        cx.body.line(f"at = at < 0 ? at + {size} : at;")
    cx.fail_if(f"at < 0 || at >= {size}")
    if clamp:
        low = "at < 0 ? 0 : " if indices.type.signed else ""
        cx.body.line(f"at = {low}at > {size - 1} ? {size - 1} : at;")


def _refuse_empty(instance: Instance) -> str | None:
    """Return why the instruction is refused: it indexes an empty tensor. None otherwise."""
    if is_empty(instance.shape(0)) and not is_empty(instance.output_shape()):
        return "an index into an empty tensor"
    return None


@kernel("Gather", kinds=ANY, refuse=_refuse_empty)
def gather(cx: KernelContext) -> None:
    """Write copies of whole slices of the operand."""
    source, indices, output = cx.input(0), cx.input(1), cx.output()
    axis = cx.int("axis")
    size, inner = source.shape[axis], math.prod(source.shape[axis + 1 :])
    with cx.body.loops(("i", "j"), (math.prod(source.shape[:axis]), indices.size)):
        declare_position(cx, indices, "j", size, clamp=True)
        with cx.body.loop("k", inner):
            target = output.access((indices.size * inner, inner, 1)).at(("i", "j", "k"))
            value = source.access((size * inner, inner, 1)).at(("i", "at", "k"))
            cx.body.line(f"{target} = {value};")


@kernel("GatherElements", kinds=ANY, refuse=_refuse_empty)
def gather_elements(cx: KernelContext) -> None:
    """Write reads of single elements, each with its own index along ``axis``."""
    source, indices, output = cx.input(0), cx.input(1), cx.output()
    axis = cx.int("axis")
    names = [f"i{dim}" for dim in range(len(output.shape))]
    with cx.body.loops(names, output.shape):
        declare_position(cx, indices, index(indices.strides, names), source.shape[axis], clamp=True)
        read_at = [*names[:axis], "at", *names[axis + 1 :]]
        value = source.access().at(read_at)
        cx.body.line(f"{output.access().at(names)} = {value};")


@kernel("GatherND", kinds=ANY, refuse=_refuse_empty)
def gather_nd(cx: KernelContext) -> None:
    """Write copies of slices: row ``r`` of the indices addresses the dims after ``batch_dims``."""
    source, indices, output = cx.input(0), cx.input(1), cx.output()
    batch, depth = cx.int("batch_dims"), indices.shape[-1]
    inner = math.prod(source.shape[batch + depth :])
    outer = math.prod(indices.shape[:batch])
    rows = math.prod(indices.shape[batch:-1])
    batch_stride = math.prod(source.shape[batch:])
    with cx.body.loops(("b", "r"), (outer, rows)):
        cx.body.line(f"const {source.type.name} *from = {source.name} + b * {batch_stride};")
        for dim in range(depth):
            step = math.prod(source.shape[batch + dim + 1 :])
            with cx.body.block(""):
                index_at = f"(b * {rows} + r) * {depth} + {dim}"
                declare_position(cx, indices, index_at, source.shape[batch + dim], clamp=True)
                cx.body.line(f"from += at * {step};")
        with cx.body.loop("k", inner):
            cx.body.line(f"{output.name}[(b * {rows} + r) * {inner} + k] = from[k];")


COMBINE = {"none": "{1}", "add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


def _scattered_value(type_: CType, reduction: str, old: str, new: str) -> str:
    """Return the C of the value that a scatter stores over ``old``."""
    op = COMBINE[reduction]
    if op == "{1}":
        return new
    return combine(op, type_, old, new)


def _overwrites_data(instance: Instance) -> Needs:
    """Return the storage needs of a scatter: it may overwrite its data if no other input is the
    data.
    """
    inputs = instance.instruction.inputs
    return Needs(in_place=(0,) if inputs.count(inputs[0]) == 1 else ())


def _refuse_reduction(instance: Instance) -> str | None:
    """Return why the reduction is refused, None if it is supported."""
    reduction = instance.instruction.attributes["reduction"]
    if reduction not in COMBINE:
        return f"the reduction {reduction!r}"
    if instance.type(0).kind == "bool" and reduction != "none":
        return f"the reduction {reduction!r} of bool"
    return None


def _copy_data(cx: KernelContext, source: Operand, output: Operand) -> None:
    """Write a copy of the data, unless the output is in the same memory."""
    if source.name != output.name:
        emit_map(cx.body, (output.size,), output.access((1,)), [source.access((1,))], "{0}")


@kernel("ScatterElements", kinds=ANY, needs=_overwrites_data, refuse=_refuse_reduction)
def scatter_elements(cx: KernelContext) -> None:
    """Write a copy of the data, then each update at its own index along ``axis``."""
    source, indices, updates, output = cx.input(0), cx.input(1), cx.input(2), cx.output()
    axis = cx.int("axis")
    _copy_data(cx, source, output)
    names = [f"i{dim}" for dim in range(len(indices.shape))]
    with cx.body.loops(names, indices.shape):
        at = index(indices.strides, names)
        size = source.shape[axis]
        declare_position(cx, indices, at, size, clamp=False)
        target = output.access().at([*names[:axis], "at", *names[axis + 1 :]])
        reduction = str(cx.instruction.attributes["reduction"])
        with cx.body.block(f"if (at >= 0 && at < {size})"):
            value = _scattered_value(output.type, reduction, target, f"{updates.name}[{at}]")
            cx.body.line(f"{target} = {value};")


@kernel("ScatterND", kinds=ANY, needs=_overwrites_data, refuse=_refuse_reduction)
def scatter_nd(cx: KernelContext) -> None:
    """Write a copy of the data, then each slice of the updates at its row of indices."""
    source, indices, updates, output = cx.input(0), cx.input(1), cx.input(2), cx.output()
    depth = indices.shape[-1]
    rows, inner = math.prod(indices.shape[:-1]), math.prod(source.shape[depth:])
    _copy_data(cx, source, output)
    if is_empty(updates.shape):
        return
    with cx.body.loop("r", rows):
        cx.body.line("ptrdiff_t to = 0, inside = 1;")
        for dim in range(depth):
            size, step = source.shape[dim], row_major(source.shape)[dim]
            with cx.body.block(""):
                declare_position(cx, indices, f"r * {depth} + {dim}", size, clamp=False)
                cx.body.line(f"inside = inside && at >= 0 && at < {size};")
                cx.body.line(f"to += at * {step};")
        reduction = str(cx.instruction.attributes["reduction"])
        with cx.body.loop("k", f"(inside ? {inner} : 0)"):
            new = f"{updates.name}[r * {inner} + k]"
            value = _scattered_value(output.type, reduction, f"{output.name}[to + k]", new)
            cx.body.line(f"{output.name}[to + k] = {value};")


@kernel("OneHot", kinds=frozenset({"float", "int"}))
def one_hot(cx: KernelContext) -> None:
    """Write the second of ``values`` where the index equals the position, the first elsewhere.

    An index out of range sets no element.
    """
    indices, values, output = cx.input(0), cx.input(1), cx.output()
    axis = cx.int("axis")
    depth, inner = output.shape[axis], math.prod(output.shape[axis + 1 :])
    outer = math.prod(output.shape[:axis])
    with cx.body.loops(("i", "j", "k"), (outer, depth, inner)):
        cx.body.line(f"ptrdiff_t at = (ptrdiff_t){indices.name}[i * {inner} + k];")
        cx.body.line(f"at = at < 0 ? at + {depth} : at;")
        target = output.access((depth * inner, inner, 1)).at(("i", "j", "k"))
        cx.body.line(f"{target} = {values.name}[at == j];")
