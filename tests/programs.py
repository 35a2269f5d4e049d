"""Small hand-made Programs for tests of what works below the graph."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.program.instruction import Instruction, Program, Slot
from smelt.program.passes import last_use


class Draft:
    """A Program being written: ``step`` adds an instruction and returns its result.

    Sizes are in floats.
    """

    def __init__(self, *inputs: int) -> None:
        self.program = Program("draft", [], (), (), {}, [])
        self.program.inputs = tuple(self.slot(size) for size in inputs)

    def slot(self, size: int) -> int:
        number = len(self.program.slots)
        return self.program.new_slot(Slot(ir.DataType.FLOAT, (size,), f"v{number}"))

    def step(self, size: int, *inputs: int, op: str = "F") -> int:
        result = self.slot(size)
        self.program.instructions.append(Instruction(op, inputs, (result,)))
        return result

    def done(self, *outputs: int) -> Program:
        self.program.outputs = outputs
        last_use.run(self.program)
        return self.program


def chain(sizes: Sequence[int]) -> Program:
    """One step after the other."""
    draft = Draft(4)
    value = draft.program.inputs[0]
    for size in sizes:
        value = draft.step(size, value)
    return draft.done(value)


def residual(blocks: int = 6, width: int = 1000) -> Program:
    """Blocks of two steps whose input is added to their result."""
    draft = Draft(width)
    value = draft.step(width, draft.program.inputs[0])
    for _ in range(blocks):
        inner = draft.step(width, draft.step(4 * width, value))
        value = draft.step(width, inner, value)
    return draft.done(draft.step(10, value))


def dense(blocks: int = 8, width: int = 500) -> Program:
    """Each block concatenates its new features to all before."""
    draft = Draft(width)
    value = draft.step(width, draft.program.inputs[0])
    for block in range(blocks):
        new = draft.step(width, draft.step(4 * width, value))
        value = draft.step((block + 2) * width, value, new, op="Concat")
    return draft.done(draft.step(10, value))


def transformer(layers: int = 4, width: int = 256, length: int = 32) -> Program:
    """Attention and a feed-forward part, each with a residual sum."""
    draft = Draft(length * width)
    size, scores = length * width, 4 * length * length
    value = draft.step(size, draft.program.inputs[0])
    for _ in range(layers):
        normal = draft.step(size, value)
        q, k, v = (draft.step(size, normal) for _ in range(3))
        weights = draft.step(scores, draft.step(scores, q, k))
        mixed = draft.step(size, draft.step(size, weights, v))
        value = draft.step(size, value, mixed)
        hidden = draft.step(4 * size, draft.step(size, value))
        value = draft.step(size, value, draft.step(size, draft.step(4 * size, hidden)))
    return draft.done(value)


NETWORKS = {
    "chain": chain([100, 900, 400, 400, 50, 700, 10]),
    "residual": residual(),
    "dense": dense(),
    "transformer": transformer(),
}
