"""What the NPU accepts; TensorSched: bands; MemAlloc: loads, stores and addresses."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import onnx_ir as ir

from examples.npu.operators import CONV_RELU, DOMAIN, MATMUL_RELU
from smelt.program.instruction import Instruction, Program
from smelt.program.lower import lower
from smelt.program.memories import Memory, SpacesPlan
from smelt.program.staging import plan_staged
from smelt.program.tile_regions import Region, convolution
from smelt.program.tile_search import tile_to_fit
from smelt.targets.base import Plan

DRAM = Memory("dram", 1 << 24, align=16)
SRAM = Memory("sram", 16 << 10, align=16)
HALF = (8 << 10) - 4 * 16
"""What one command may touch, so that two fit: four operands, each aligned."""


@dataclass(frozen=True)
class Options:
    """``double_buffer``: copy the next operands while the units compute."""

    double_buffer: bool = True


def accepts(node: ir.Node) -> bool | str:
    """The units run their own operators, as far as the hardware goes."""
    if (node.domain, node.op_type) not in (CONV_RELU.key, MATMUL_RELU.key):
        return "its units compute convolutions and products of int8"
    if node.op_type == "ConvRelu":
        if node.attributes.get_int("group", 1) > 1:
            return "its convolution unit has no groups"
        if any(d != 1 for d in node.attributes.get_ints("dilations") or ()):
            return "its convolution unit has no dilation"
    least = min(_smallest_bands(node))
    return least <= HALF or f"its smallest band takes {least} bytes of {HALF}"


def _smallest_bands(node: ir.Node) -> list[int]:
    """Bytes that one command touches: of all, of one row, of one filter or column."""
    x, w, bias, y = (_sizes(value) for value in (*node.inputs, *node.outputs))
    whole = prod(x) + prod(w) + 4 * prod(bias) + prod(y)
    if node.op_type == "MatMulRelu":
        row = x[1] + prod(w) + 4 * prod(bias) + y[1]
        return [whole, row, prod(x) + w[0] + 4 + y[0]]
    row = x[1] * x[3] * w[2] + prod(w) + 4 * prod(bias) + y[1] * y[3]
    one = prod(x) + prod(w[1:]) + 4 + y[2] * y[3]
    return [whole, x[0] * row, one if x[0] == 1 else whole]


def _sizes(value: ir.Value | None) -> tuple[int, ...]:
    assert value is not None
    assert value.shape is not None
    return tuple(map(int, value.shape.numpy()))


def product(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Rows of x, or columns of w with their bias and scales."""
    if axis == 0:
        return Region({0: {0: (start, stop)}})
    region = Region({1: {1: (start, stop)}, 2: {0: (start, stop)}})
    return _with_scales(instruction, region, start, stop)


def filters(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """As any convolution; bands of filters have their part of the scales."""
    region = convolution(program, instruction, axis, start, stop)
    return _with_scales(instruction, region, start, stop) if region and axis == 1 else region


def _with_scales(instruction: Instruction, region: Region, start: int, stop: int) -> Region:
    scales = instruction.attributes["w_scales"]
    assert isinstance(scales, tuple)
    if len(scales) > 1:
        region.attributes["w_scales"] = scales[start:stop]
    return region


REGIONS = {f"{DOMAIN}::ConvRelu": filters, f"{DOMAIN}::MatMulRelu": product}


def schedule(plan: Plan[Program, SpacesPlan]) -> None:
    """Lower, and split what needs more than half of the scratchpad, so that two bands fit."""
    plan.steps = tile_to_fit(lower(plan.model), HALF, (2, 1, 0), REGIONS)


def allocate(plan: Plan[Program, SpacesPlan]) -> None:
    """Loads and stores around each command, and where every tensor lies at each time."""
    plan.memory = plan_staged(plan.steps, DRAM, SRAM, double_buffer=plan.options.double_buffer)
    plan.facts["sram_bytes"] = plan.memory.used["sram"]
    plan.facts["commands"] = len(plan.memory.program.instructions)
