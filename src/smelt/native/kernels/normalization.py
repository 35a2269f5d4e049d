"""Batch, layer, RMS, instance and group normalization: stages of moments, then the results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from smelt.loops import operators
from smelt.loops.algorithm import (
    Algorithm,
    Apply,
    Axis,
    Buffer,
    Expression,
    Load,
    Number,
    Reduce,
    Stage,
)
from smelt.loops.lower import lower
from smelt.loops.printer import print_nest
from smelt.loops.schedule import ComputeAt, Directive, Partial, Schedule, Share
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.nest import Access, broadcast_strides, row_major
from smelt.native.kernels.reduce import LANES, loops_of
from smelt.program.run_sizes import highest, is_empty, surely_below
from smelt.program.storage import Needs


def _in_place(instance: Instance) -> Needs:
    """Return needs by which the result may overwrite the input."""
    return Needs(in_place=(0,))


@kernel("BatchNormalization", needs=_in_place)
def batch_normalization(cx: KernelContext) -> None:
    """Write a loop per channel, dim 1, with one factor and one addend."""
    shape = cx.input(0).shape
    sizes = shape[0], shape[1] if len(shape) > 1 else 1, math.prod(shape[2:])
    axes = tuple(Axis(name, size) for name, size in zip("nci", sizes, strict=True))
    at, channel = tuple(axis.at for axis in axes), (axes[1].at,)
    source, output = (Buffer(each.name, each.type, sizes) for each in (cx.input(0), cx.output()))
    scale, bias, mean, variance = (
        Load(Buffer(cx.input(i).name, cx.type(i), (sizes[1],)), channel) for i in range(1, 5)
    )
    factor = Stage(
        Buffer("f", output.type, (sizes[1],)), (axes[1],), _over_root(cx, scale, variance)
    )
    centred = Apply(operators.SUBTRACT, (Load(source, at), mean))
    result = Stage(
        output, axes, Apply(operators.MULTIPLY_ADD, (centred, Load(factor.to, channel), bias))
    )
    print_nest(lower(Algorithm((factor, result)), (ComputeAt("f", "c", 1),)), cx.body)


def _over_root(cx: KernelContext, number: Expression, variance: Expression) -> Expression:
    """Return a number over the root of a variance, to which ``epsilon`` is added."""
    added = Apply(operators.ADD, (variance, Number(cx.float("epsilon"))))
    return Apply(operators.DIVIDE, (number, Apply(operators.SQUARE_ROOT, (added,))))


def _mixed_types(instance: Instance) -> str | None:
    """Return why the kernel refuses operands of different element types; None if all are alike."""
    inputs = range(len(instance.instruction.inputs))
    present = [i for i in inputs if instance.slot(i) is not None]
    if any(instance.type(i) != instance.type(0) for i in present):
        return "operands of different element types"
    return None


@kernel("LayerNormalization", "RMSNormalization", needs=_in_place, refuse=_mixed_types, shared=True)
def layer_normalization(cx: KernelContext) -> None:
    """Write the normalization over all dims from ``axis`` on; scale and bias broadcast over the
    input.
    """
    print_nest(lower(*layers_of(cx)), cx.body)


def layers_of(cx: KernelContext) -> tuple[Algorithm, Schedule]:
    """Return algorithm and schedule of a layer normalization, over the dims from ``axis`` on."""
    shape = cx.input(0).shape
    factors = [operand for i in (1, 2) if (operand := cx.optional(i)) is not None]
    reads = [each.access(broadcast_strides(each.shape, shape)) for each in factors]
    return _normalized(cx, shape, cx.int("axis"), reads)


def _groups(instance: Instance) -> int:
    """Return the number of groups: ``num_groups``, or the channels for InstanceNormalization."""
    channels = instance.shape(0)[1]
    return instance.int("num_groups") if "num_groups" in instance.attributes else channels


def _refuse_groups(instance: Instance) -> str | None:
    """Return why the groups or types are refused, None if they are supported."""
    if instance.shape(0)[1] % max(_groups(instance), 1):
        return "channels that do not divide into the groups"
    return _mixed_types(instance)


@kernel("InstanceNormalization", "GroupNormalization", needs=_in_place, refuse=_refuse_groups)
def group_normalization(cx: KernelContext) -> None:
    """Write the normalization over the channels of a group and all spatial dims.

    Scale and bias are per channel.
    """
    print_nest(lower(*groups_of(cx)), cx.body)


def groups_of(cx: KernelContext) -> tuple[Algorithm, Schedule]:
    """Return the algorithm and the schedule of a normalization of groups of channels.

    The input is read as ``[sample, group, channel of the group, pixel]``. Scale and bias have one
    number per channel, so only the strides of group and channel are not 0.
    """
    (samples, channels, *spatial), groups = cx.input(0).shape, _groups(cx)
    width = channels // groups
    reads = [cx.input(i).access((0, width, 1, 0)) for i in (1, 2)]
    return _normalized(cx, (samples, groups, width, math.prod(spatial)), 2, reads)


def _normalized(
    cx: KernelContext, shape: Sequence[int], first: int, factors: Sequence[Access]
) -> tuple[Algorithm, Schedule]:
    """Return the normalization of a tensor of ``shape`` over the dims from ``first`` on.

    1. ``kept`` are the loops over rows, ``inner`` those over the elements of a row.
    2. The mean of a row is subtracted, except for RMSNormalization.
    3. The root of the mean square plus epsilon divides the result.
    4. The first of ``factors`` multiplies, and the second is added.
    """
    if is_empty(shape):
        return Algorithm((Stage(Buffer("y", cx.type(0), (0,)), (Axis("k", 0),), Number(0)),)), ()
    read, count = replace(cx.input(0).access(), strides=row_major(shape)), math.prod(shape[first:])
    loops = loops_of(tuple(shape), range(first, len(shape)), [read, *factors])
    _, *factor_loads = loops.loads()
    kept, row_axis = loops.where(False) or (Axis("o", 1),), Axis("k", count)
    inner = loops.where(True) or (row_axis,)
    axes = (*kept, *inner)
    source, to = (
        Buffer(each.name, cx.type(0), tuple(axis.extent for axis in axes))
        for each in (cx.input(0), cx.output())
    )
    row_index = tuple(axis.at for axis in kept)
    load = Load(source, (*row_index, *(axis.at for axis in inner)))
    element: Expression = Load(source, (*row_index, *(0 for _ in inner[1:]), row_axis.at))
    stages, schedule = list[Stage](), list[Directive]()
    shared = cx.body.widest([highest(axis.extent) for axis in kept])
    if shared is not None:
        schedule.append(Share(kept[shared].name))

    def moment(position: int, name: str, value: Expression) -> Load:
        """Add a stage of one number per row, and return the number.

        If the instruction has an output at ``position``, the stage writes it.
        """
        outputs = cx.instruction.outputs[position:]
        is_output = bool(outputs) and outputs[0] >= 0
        to = Buffer(
            cx.output(position).name if is_output else name, cx.type(0), source.shape[: len(kept)]
        )
        stages.append(Stage(to, kept, value))
        schedule.append(ComputeAt(to.name, kept[-1].name, 0 if is_output else 1))
        return Load(to, row_index)

    value: Expression = load
    if cx.instruction.op != "RMSNormalization":
        mean = moment(1, "mean", _mean(element, row_axis))
        element, value = (Apply(operators.SUBTRACT, (each, mean)) for each in (element, load))
    variance = _mean(Apply(operators.SQUARE, (element,)), row_axis)
    value = Apply(operators.MULTIPLY, (value, moment(2, "f", _over_root(cx, Number(1), variance))))
    if factor_loads:
        operator = operators.MULTIPLY_ADD if factor_loads[1:] else operators.MULTIPLY
        value = Apply(operator, (value, *factor_loads))
    stages.append(Stage(to, axes, value))
    if not surely_below(count, LANES):
        schedule.append(Partial("k", LANES))
    return Algorithm(tuple(stages)), tuple(schedule)


def _mean(value: Expression, axis: Axis) -> Expression:
    """Return the mean of a value along an axis."""
    return Apply(operators.DIVIDE, (Reduce(operators.SUM, (axis,), value), Number(axis.extent)))
