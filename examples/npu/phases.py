"""What it accepts; TensorSched: layouts and tiles; MemAlloc: loads, stores and addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from examples.npu.operators import CONV_RELU, DOMAIN, MATMUL_RELU
from smelt.program.chips.layouts import Layouts, with_layouts
from smelt.program.chips.memories import Memory, SpacesPlan
from smelt.program.chips.staging import plan_staged
from smelt.program.chips.tile_regions import Region, convolution
from smelt.program.chips.tile_search import misfit, tile_to_fit
from smelt.program.instruction import Instruction, Program
from smelt.program.layout import Layout
from smelt.program.lower import lower, lower_alone
from smelt.targets.base import Plan

DRAM = Memory("dram", 1 << 24, align=16)
SRAM = Memory("sram", 32 << 10, align=16)
HALF = 16 << 10
"""What one command may touch, so that two fit."""

IMAGE = Layout("NCHW", "NHWC16c")
ROWS = Layout("MK", "MK16k")
LAYOUTS = {
    f"{DOMAIN}::ConvRelu": Layouts((IMAGE, Layout("OIHW", "OHWI4o16i")), (IMAGE,)),
    f"{DOMAIN}::MatMulRelu": Layouts((ROWS, Layout("KN", "NK2n16k")), (ROWS,)),
}
"""The convolution unit takes 16 channels of a pixel by 4 filters at once, the other 16 elements of
a row by 2 columns; weights lie in the order in which the units go through them."""


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
    assert isinstance(node.graph, ir.Graph)
    alone = lower_alone(ir.Model(node.graph, ir_version=10), node)
    return misfit(with_layouts(alone, LAYOUTS, interface=True), **FIT) or True


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
FIT: dict[str, Any] = {"budget": HALF, "axes": (2, 1, 0, 3), "regions": REGIONS, "align": 16}
"""Tiles of rows, filters or columns, images, and pixels of a row."""


def schedule(plan: Plan[Program, SpacesPlan]) -> None:
    """Lower, bring tensors into layouts, and cut what needs more than half of the scratchpad."""
    program = with_layouts(lower(plan.model), LAYOUTS, interface=True)
    plan.steps = tile_to_fit(program, **FIT)


def allocate(plan: Plan[Program, SpacesPlan]) -> None:
    """Loads and stores around each command, and where every tensor lies at each time."""
    plan.memory = plan_staged(plan.steps, DRAM, SRAM, double_buffer=plan.options.double_buffer)
    plan.facts["sram_bytes"] = plan.memory.used["sram"]
    plan.facts["commands"] = len(plan.memory.program.instructions)
