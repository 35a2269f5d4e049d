"""Rewrites every DotGeneral as a batched matrix product, with the movement around it explicit.

    canonical   [B..., M?, K] x [B..., K, N?] -> [B..., M?, N?]

M is missing if the lhs has no free dim, N if the rhs has none. Operands are transposed and
reshaped only where that does something, and the result is reshaped only if a side had several
free dims. A product without contracting dims becomes a broadcast multiplication, because a
matrix product with K = 1 is bound by its writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import onnx_ir as ir

from smelt.operators.semiring import semiring_of
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue, Dim, Instruction, Program, Slot


def run(program: Program, keep: Callable[[Instruction], bool] = lambda dot: False) -> bool:
    """Decompose every DotGeneral that is not canonical; True if there was one.

    Those that ``keep`` accepts stay, for targets that read other layouts.
    """
    before = program.instructions
    program.instructions = []
    changed = False
    for instruction in before:
        dims = instruction.attributes.get("dims")
        if instruction.op != "DotGeneral" or not isinstance(dims, DotDims):
            program.instructions.append(instruction)
            continue
        dot = DotRewriter(program, instruction, dims)
        if dims.lhs_contracting and (dot.is_canonical() or keep(instruction)):
            program.instructions.append(instruction)
            continue
        changed = True
        if dims.lhs_contracting:
            dot.decompose()
        else:
            dot.multiply()
    return changed


@dataclass
class DotRewriter:
    """One DotGeneral being rewritten; new instructions are appended to ``program``."""

    program: Program
    instruction: Instruction
    dims: DotDims

    def is_canonical(self) -> bool:
        """True if the dimension numbers are those of a batched matrix product."""
        return self.dims == self._canonical_dims()

    def _canonical_dims(self) -> DotDims:
        """Return the canonical dimension numbers; empty ones if a side has several free dims."""
        batch = tuple(range(len(self.dims.lhs_batch)))
        m = 1 if self.lhs_free() else 0
        if len(self.lhs_free()) > 1 or len(self.rhs_free()) > 1:
            return DotDims((), ())
        return DotDims((len(batch) + m,), (len(batch),), batch, batch)

    def lhs_free(self) -> tuple[int, ...]:
        """Return the free dims of the left operand."""
        return self.dims.lhs_free(len(self.shape(self.instruction.inputs[0])))

    def rhs_free(self) -> tuple[int, ...]:
        """Return the free dims of the right operand."""
        return self.dims.rhs_free(len(self.shape(self.instruction.inputs[1])))

    def shape(self, slot: int) -> tuple[Dim, ...]:
        """Return the shape of ``slot``."""
        return self.program.slots[slot].shape

    def decompose(self) -> None:
        """Emit the canonical product, with transposes and reshapes around it.

        Its operands are [batch..., rows, summed] and [batch..., summed, columns]. ``_grouped``
        merges several dims of a group into one.
        """
        dims, (lhs, rhs), (output,) = self.dims, self.instruction.inputs, self.instruction.outputs
        lhs_free, rhs_free = self.lhs_free(), self.rhs_free()
        left = self._grouped(lhs, dims.lhs_batch, lhs_free, dims.lhs_contracting)
        right = self._grouped(rhs, dims.rhs_batch, dims.rhs_contracting, rhs_free, free=2)
        batch = tuple(range(len(dims.lhs_batch)))
        summed_axis = len(batch) + (1 if lhs_free else 0)
        attributes = {
            **self.instruction.attributes,
            "dims": DotDims((summed_axis,), (len(batch),), batch, batch),
        }
        canonical = replace(self.instruction, inputs=(left, right), attributes=attributes)
        if len(lhs_free) <= 1 and len(rhs_free) <= 1:
            self.program.instructions.append(canonical)
            return
        shape = self.shape(left)[:summed_axis] + self.shape(right)[len(batch) + 1 :]
        product = self.new_slot(self.program.slots[output].dtype, shape, "dot")
        self.program.instructions.append(replace(canonical, outputs=(product,)))
        self.emit("Reshape", (product,), (output,))

    def _grouped(
        self,
        slot: int,
        batch: Sequence[int],
        second: Sequence[int],
        third: Sequence[int],
        *,
        free: int = 1,
    ) -> int:
        """Return the operand as ``[batch..., second, third]``, each group of dims merged into one.

        ``free`` is the place of the group of free dims, 1 or 2; if that is empty, it is omitted.
        """
        slot = self.transposed(slot, (*batch, *second, *third))
        shape = self.shape(slot)
        second_start, third_start = len(batch), len(batch) + len(second)
        groups = [shape[second_start:third_start], shape[third_start:]]
        merged = [
            product_of(group)
            for position, group in enumerate(groups, 1)
            if group or position != free
        ]
        return self.reshaped(slot, (*shape[:second_start], *merged))

    def multiply(self) -> None:
        """Emit a broadcast to ``[batch..., lhs free..., rhs free...]`` and a product in the wider
        type."""
        dims, (lhs, rhs), (output,) = self.dims, self.instruction.inputs, self.instruction.outputs
        lhs_free, rhs_free = self.lhs_free(), self.rhs_free()
        batch_rank = len(dims.lhs_batch)
        left = self.transposed(lhs, (*dims.lhs_batch, *lhs_free))
        right = self.transposed(rhs, (*dims.rhs_batch, *rhs_free))
        left = self.reshaped(left, (*self.shape(left), *(1 for _ in rhs_free)))
        shape = self.shape(right)
        right = self.reshaped(
            right, (*shape[:batch_rank], *(1 for _ in lhs_free), *shape[batch_rank:])
        )
        dtype = max(self.dtype(output), self.dtype(left), key=lambda dtype: dtype.bitwidth)
        operands = (self._cast(left, dtype), self._cast(right, dtype))
        times = semiring_of(self.instruction.attributes["semiring"]).times
        if dtype == self.dtype(output):
            self.emit(times, operands, (output,))
            return
        product = self.new_slot(dtype, self.shape(output), "product")
        self.emit(times, operands, (product,))
        self.emit("Cast", (product,), (output,), saturate=1)

    def transposed(self, slot: int, perm: tuple[int, ...]) -> int:
        """Return ``slot`` transposed by ``perm``; ``slot`` itself if that keeps the order."""
        if perm == tuple(range(len(perm))):
            return slot
        shape = self.shape(slot)
        result = self.new_slot(self.dtype(slot), [shape[dim] for dim in perm], "transposed")
        self.emit("Transpose", (slot,), (result,), perm=perm)
        return result

    def reshaped(self, slot: int, shape: tuple[Dim, ...]) -> int:
        """Return ``slot`` reshaped to ``shape``; ``slot`` itself if the ranks are equal."""
        if len(shape) == len(self.shape(slot)):  # groups of one dim each: nothing merged
            return slot
        result = self.new_slot(self.dtype(slot), shape, "reshaped")
        self.emit("Reshape", (slot,), (result,))
        return result

    def _cast(self, slot: int, dtype: ir.DataType) -> int:
        """Return ``slot`` cast to ``dtype``; ``slot`` itself if it has that type."""
        if self.dtype(slot) == dtype:
            return slot
        result = self.new_slot(dtype, self.shape(slot), "cast")
        self.emit("Cast", (slot,), (result,), saturate=1)
        return result

    def dtype(self, slot: int) -> ir.DataType:
        """Return the element type of ``slot``."""
        return self.program.slots[slot].dtype

    def new_slot(self, dtype: ir.DataType, shape: Sequence[Dim], suffix: str) -> int:
        """Return a new slot, named after the result and ``suffix``."""
        name = self.program.slots[self.instruction.outputs[0]].name
        return self.program.new_slot(Slot(dtype, tuple(shape), f"{name}/{suffix}"))

    def emit(
        self,
        op: str,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        **attributes: AttributeValue,
    ) -> None:
        """Append an instruction with the origin of the DotGeneral."""
        origin = self.instruction.origin
        self.program.instructions.append(Instruction(op, inputs, outputs, attributes, (), origin))


def product_of(dims: Sequence[Dim]) -> Dim:
    """Return the product of ``dims``, which may be symbolic."""
    product: Dim = prod(dim for dim in dims if isinstance(dim, int))
    for dim in dims:
        if not isinstance(dim, int):
            product = dim if product == 1 else dim * product
    return product
