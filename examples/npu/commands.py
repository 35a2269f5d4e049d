"""CodeEmit: the command stream of the NPU, one line of JSON a command, and its DRAM image.

Emission is per operator: a table maps an instruction to what its command says. Addresses are bytes
in the memory that a tensor lies in; inputs, constants and outputs come first in DRAM.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from examples.npu.operators import DOMAIN
from smelt.program.chips.memories import SpacesPlan
from smelt.program.chips.overlap import LOAD, STORE
from smelt.program.instruction import Instruction, Program
from smelt.program.memory import aligned
from smelt.runtime.interface import Value
from smelt.targets.base import Artifact, Plan
from smelt.targets.runner import Runner

FILES = ("commands.jsonl", "constants.bin", "layout.json")


class Writer:
    """Writes one program: where each slot lies, and a command for each instruction."""

    def __init__(self, plan: SpacesPlan) -> None:
        self.plan, self.program = plan, plan.program
        self.fixed: dict[int, int] = {}
        end = aligned(plan.used["dram"], 16)
        for slot in (*self.program.constants, *self.program.inputs, *self.program.outputs):
            if slot not in self.fixed:
                self.fixed[slot] = end
                end = aligned(end + self.program.slots[slot].nbytes, 16)
        self.dram_bytes = end

    def tensor(self, slot: int) -> dict[str, Any]:
        """Address, sizes in memory and type of ``slot``."""
        described = self.program.slots[slot]
        at = self.fixed[slot] if slot in self.fixed else self.plan.offset_of(slot)
        dtype = str(np.dtype(described.dtype.numpy()))
        return {"at": at, "shape": [*described.stored], "type": dtype}

    def command(self, instruction: Instruction) -> dict[str, Any]:
        """The command of one instruction, by the table of emitters."""
        return {"do": WORDS[instruction.op], **EMITTERS[instruction.op](self, instruction)}


Emitter = Callable[[Writer, Instruction], Mapping[str, Any]]


def copy(writer: Writer, instruction: Instruction) -> Mapping[str, Any]:
    """A box of a tensor in DRAM and all of one in the scratchpad; which is which, the word says."""
    (source,), (target,) = instruction.inputs, instruction.outputs
    far = writer.program.slots[target if instruction.op == STORE else source]
    box: dict[int, tuple[int, int]] = {}
    if "axes" in instruction.attributes:
        axes, *bounds = map(instruction.ints, ("axes", "starts", "stops"))
        box = dict(zip(axes, zip(*bounds, strict=True), strict=True))
    return {
        "from": writer.tensor(source),
        "to": writer.tensor(target),
        "box": far.box(box),
    }


def compute(writer: Writer, instruction: Instruction) -> Mapping[str, Any]:
    """Operands, result, and the attributes of the unit."""
    x, w, bias = map(writer.tensor, instruction.inputs)
    y = writer.tensor(instruction.outputs[0])
    return {"x": x, "w": w, "bias": bias, "y": y, "with": dict(instruction.attributes)}


WORDS = {
    LOAD: "load",
    STORE: "store",
    f"{DOMAIN}::ConvRelu": "conv",
    f"{DOMAIN}::MatMulRelu": "matmul",
}
EMITTERS: Mapping[str, Emitter] = {
    LOAD: copy,
    STORE: copy,
    f"{DOMAIN}::ConvRelu": compute,
    f"{DOMAIN}::MatMulRelu": compute,
}


def emit(plan: Plan[Program, SpacesPlan]) -> Artifact:
    """The stream, the constants and where everything lies; ``load`` runs it in the simulator."""
    writer = Writer(plan.memory)
    program = writer.program
    lines = [json.dumps(writer.command(each)) for each in program.instructions]
    image = bytearray(writer.dram_bytes)
    for slot, array in program.constants.items():
        at = writer.fixed[slot]
        image[at : at + array.nbytes] = program.bytes_of(slot)
    layout = {
        "sram_bytes": plan.memory.used["sram"],
        "inputs": [writer.tensor(slot) for slot in program.inputs],
        "outputs": [writer.tensor(slot) for slot in program.outputs],
    }
    files = {
        "commands.jsonl": "".join(f"{line}\n" for line in lines).encode(),
        "constants.bin": bytes(image),
        "layout.json": (json.dumps(layout) + "\n").encode(),
    }
    facts = dict(plan.facts)
    artifact = Artifact("npu", plan.model, files, plan, facts, lambda: runner(files, program))
    from examples.npu.simulator import Machine

    artifact.report["cycles"] = Machine(files).cycles
    return artifact


def runner(files: Mapping[str, bytes], program: Program) -> Runner:
    """What runs the files of an artifact: the driver, which packs what it hands to the machine."""
    from examples.npu.simulator import Machine

    machine = Machine(files)
    given = [program.slots[slot] for slot in program.inputs]
    asked = [program.slots[slot] for slot in program.outputs]

    def run(*inputs: Value) -> tuple[Value, ...]:
        packed = [slot.pack(np.asarray(x)) for slot, x in zip(given, inputs, strict=True)]
        return tuple(slot.unpack(y) for slot, y in zip(asked, machine(*packed), strict=True))

    return run
