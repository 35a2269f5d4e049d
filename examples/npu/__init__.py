"""A small NPU as a target of its own: what a vendor writes, step by step, and nothing of smelt's.

The machine: a unit for int8 convolutions and one for int8 products, each with Relu and
requantization at its end, which take blocks of 16 channels; 32 KiB of scratchpad (SRAM) that they
compute in; DRAM for everything else; a DMA engine that copies boxes of tensors between the two and
works while the units do.

==================  ================================================================
``operators.py``    the operators of the units, with their meaning in ONNX
``selection.py``    rules that find them in a quantized model
``phases.py``       what it accepts, layouts, tiles that fit the scratchpad, addresses
``commands.py``     the command stream, written and read
``simulator.py``    the machine: bytes in two memories, and cycles of three engines
==================  ================================================================
"""

from __future__ import annotations

from examples.npu.commands import emit
from examples.npu.operators import OPERATORS, UNITS
from examples.npu.phases import DRAM, LAYOUTS, SRAM, Options, accepts, allocate, schedule
from examples.npu.selection import RULES
from smelt.targets.base import Limits, Target

npu = Target(
    name="npu",
    summary="an example: int8 units, a scratchpad and DMA, in simulation",
    operators=OPERATORS,
    select=RULES,
    limits=Limits(dynamic_dims=False, operators=frozenset(each.key for each in UNITS)),
    accepts=accepts,
    fallback="c",
    memories=(DRAM, SRAM),
    layouts=LAYOUTS,
    options=Options,
    schedule=schedule,
    allocate=allocate,
    emit=emit,
)
