"""Assigns memory layouts to slots and inserts conversions between layouts.

Operators declare the layouts of their operands. ``with_layouts`` gives each slot a layout, packs
constants at compile time, and inserts a ``Relayout`` where a consumer needs another layout.
Operators that take any layout, such as elementwise ones, form groups; each group gets the layout
that converts the fewest bytes, so that conversions around it cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from smelt.errors import UsageError
from smelt.program.instruction import Instruction, Program
from smelt.program.layout import Layout
from smelt.program.passes import last_use
from smelt.program.verify import broken

RELAYOUT = "Relayout"
"""Copies a tensor into another layout; the layouts are those of its two slots."""

MOVES = frozenset({"Load", "Store", "Band", "Join", RELAYOUT})
"""Instructions that copy what another operator has computed."""


@dataclass(frozen=True)
class Layouts:
    """The layout of each operand and result by position; row-major if None or beyond the end.

    ``any``: the operator takes any layout. Its result and its operands, which have the same shape,
    then have the same layout.
    """

    inputs: tuple[Layout | None, ...] = ()
    outputs: tuple[Layout | None, ...] = ()
    any: bool = False


ANY = Layouts(any=True)

LayoutsOf: TypeAlias = Layouts | Callable[[Program, Instruction], Layouts]
"""The layouts of an operator; a function if attributes or sizes decide."""


def layouts_of(
    program: Program, instruction: Instruction, table: Mapping[str, LayoutsOf]
) -> Layouts:
    """Return the layouts that ``table`` declares for ``instruction``.

    They are row-major for operators that the table lacks, and for broadcast operands of operators
    that take any layout.
    """
    layouts = table.get(instruction.op, Layouts())
    layouts = layouts if isinstance(layouts, Layouts) else layouts(program, instruction)
    if layouts.any:
        slots = [s for s in (*instruction.inputs, *instruction.outputs) if s >= 0]
        if len({program.slots[slot].shape for slot in slots}) > 1:
            return Layouts()
    return layouts


def with_layouts(
    program: Program, table: Mapping[str, LayoutsOf], *, interface: bool = False
) -> Program:
    """Return ``program`` with each slot in the layout that its operators, named in ``table``, need.

    With ``interface``, inputs and outputs of the program also have the layouts of their operators,
    and the caller packs and unpacks; otherwise they are row-major. Raises UsageError E660 for a
    layout whose rank differs from its operand's.
    """
    return _Converter(program, table, interface).run()


@dataclass
class _Converter:
    """Gives the slots of one program their layouts, and inserts the conversions.

    The result of an operator that takes any layout is in a group of ``group``. Every other slot has
    the layout of the operator that writes it, in ``fixed``. ``made`` is the new program.
    """

    program: Program
    table: Mapping[str, LayoutsOf]
    interface: bool
    made: Program = field(init=False)
    declared: list[Layouts] = field(init=False)
    group: dict[int, int] = field(default_factory=dict)
    """Union-find parents of slots whose layout is free; the root stands for the group."""
    fixed: dict[int, Layout | None] = field(default_factory=dict)
    """The layout of each other slot that is computed or passed by the caller."""
    converted: dict[tuple[int, Layout | None], int] = field(default_factory=dict)
    """The slot of each value that was converted to a layout, so that readers share it."""

    def run(self) -> Program:
        """Return the converted program."""
        program = self.program
        slots, constants = list(program.slots), dict(program.constants)
        self.made = replace(program, slots=slots, constants=constants, instructions=[])
        self.declared = [
            layouts_of(program, instruction, self.table) for instruction in program.instructions
        ]
        self._find_groups()
        chosen = self._layout_per_group()
        self.fixed.update({slot: chosen[self._root(slot)] for slot in self.group})
        for slot, layout in self.fixed.items():
            self._set(slot, layout)
        for instruction, declared in zip(program.instructions, self.declared, strict=True):
            self._convert(instruction, declared)
        if not self.interface:
            outputs = tuple(
                self._in_layout(slot, layout=None, reader="an output") for slot in program.outputs
            )
            self.made = replace(self.made, outputs=outputs)
        used = {slot for instruction in self.made.instructions for slot in instruction.inputs}
        used.update(self.made.outputs)
        used_constants = {
            slot: array for slot, array in self.made.constants.items() if slot in used
        }
        self.made = replace(self.made, constants=used_constants)
        last_use.run(self.made)
        return self.made

    def _find_groups(self) -> None:
        """Group the slots whose layout is free, and note the layout of every other slot in
        ``fixed``.

        An instruction that takes any layout puts its operands and its result into one group, so
        they get the same layout. ``_root`` follows ``group`` to the slot that stands for the group.
        """
        program = self.program
        if self.interface:
            self.group.update((slot, slot) for slot in program.inputs)
        else:
            self.fixed.update(dict.fromkeys(program.inputs))
        for instruction, declared in zip(program.instructions, self.declared, strict=True):
            if declared.any:
                (result_slot,) = instruction.outputs
                self.group[result_slot] = result_slot
                for slot in instruction.inputs:
                    if slot in self.group:
                        self.group[self._root(slot)] = self._root(result_slot)
                continue
            for position, slot in enumerate(instruction.outputs):
                if slot >= 0:
                    self.fixed[slot] = _at(declared.outputs, position)

    def _root(self, slot: int) -> int:
        """Return the root of the group of ``slot``, and shorten the path to it."""
        while self.group[slot] != slot:
            self.group[slot] = slot = self.group[self.group[slot]]
        return slot

    def _layout_per_group(self) -> dict[int, Layout | None]:
        """Return, for the root of each group, the layout that converts the fewest bytes.

        ``layouts_needed`` has, for each group, pairs of a slot and a layout: a slot of the group
        with a layout that a reader needs, or an operand of the group with the layout that it has.
        (Dicts without values are sets in order of insertion.)
        """
        layouts_needed: dict[int, dict[tuple[int, Layout | None], None]] = {}
        for group in {self._root(slot): None for slot in self.group}:
            layouts_needed[group] = {}
        for slot, layout in self._conversions():
            layouts_needed[self._root(slot)][slot, layout] = None
        for instruction, declared in zip(self.program.instructions, self.declared, strict=True):
            if declared.any:
                for slot in instruction.inputs:
                    if slot in self.fixed:
                        group = self._root(instruction.outputs[0])
                        layouts_needed[group][slot, self.fixed[slot]] = None
        return {group: self._cheapest(pairs) for group, pairs in layouts_needed.items()}

    def _cheapest(self, pairs: Collection[tuple[int, Layout | None]]) -> Layout | None:
        """Return the layout of a group for which the fewest bytes are converted.

        Each of ``pairs`` costs a conversion of its slot unless the group has its layout.
        """

        def bytes_of(layout: Layout | None) -> int:
            """Return the bytes that are converted if the group has ``layout``."""
            return sum(self.program.slots[slot].nbytes for slot, other in pairs if other != layout)

        return min(dict.fromkeys([*(layout for _, layout in pairs), None]), key=bytes_of)

    def _conversions(self) -> Iterator[tuple[int, Layout | None]]:
        """Yield slots of groups, each with a layout that a reader needs."""
        for instruction, declared in zip(self.program.instructions, self.declared, strict=True):
            if not declared.any:
                for position, slot in enumerate(instruction.inputs):
                    if slot in self.group:
                        yield slot, _at(declared.inputs, position)
        if not self.interface:
            yield from ((slot, None) for slot in self.program.outputs if slot in self.group)

    def _convert(self, instruction: Instruction, declared: Layouts) -> None:
        """Append ``instruction``, whose inputs are converted to the layouts that it needs."""
        inputs = []
        for position, slot in enumerate(instruction.inputs):
            layout = _at(declared.inputs, position)
            if declared.any:
                layout = self.fixed[instruction.outputs[0]]
            inputs.append(slot if slot < 0 else self._in_layout(slot, layout, instruction.op))
        self.made.instructions.append(replace(instruction, inputs=tuple(inputs)))

    def _in_layout(self, slot: int, layout: Layout | None, reader: str) -> int:
        """Return a slot with the value of ``slot`` in ``layout``.

        It is added, with its conversion, if no reader needed it before. A constant is packed here.
        """
        if self.made.slots[slot].layout == layout:
            return slot
        key = slot, layout
        if key not in self.converted:
            converted = self.made.new_slot(self.made.slots[slot])
            self._set(converted, layout, reader)
            if slot in self.program.constants:
                array = self.program.constants[slot]
                self.made.constants[converted] = array if layout is None else _packed(array, layout)
            else:
                origin = f"{self.made.slots[slot].name} as {layout or 'rows'}"
                self.made.instructions.append(
                    Instruction(RELAYOUT, (slot,), (converted,), origin=origin)
                )
            self.converted[key] = converted
        return self.converted[key]

    def _set(self, slot: int, layout: Layout | None, reader: str = "its operator") -> None:
        """Set the layout of ``slot``; raises UsageError E660 if the rank differs."""
        described = self.made.slots[slot]
        if layout is not None and layout.rank != len(described.shape):
            raise UsageError(
                "E660",
                f"the layout {layout.order!r} does not fit {described.name!r}",
                at=f"an operand or result of {reader}",
                why=f"the layout has {layout.rank} dims, the tensor has {len(described.shape)}",
                fix="give a layout with one letter for each dim of the tensor",
            )
        self.made.slots[slot] = replace(described, layout=layout)


def _packed(array: np.ndarray, layout: Layout) -> np.ndarray:
    """Return ``array`` in ``layout``, read-only."""
    packed = layout.pack(array)
    packed.flags.writeable = False
    return packed


def _at(layouts: tuple[Layout | None, ...], position: int) -> Layout | None:
    """Return the layout at ``position``; None, which is row-major, beyond the end."""
    return layouts[position] if position < len(layouts) else None


def verify_layouts(program: Program, table: Mapping[str, LayoutsOf]) -> None:
    """Raise InternalError E963 if an operand has another layout than ``table`` declares.

    Also raise it if a copy other than a Relayout changes a layout or cuts a block, or if a constant
    has other sizes than its layout stores.
    """
    for slot, array in program.constants.items():
        if array.shape != program.slots[slot].stored:
            raise broken(
                f"the constant {program.slots[slot].name!r} does not have the sizes of its layout"
            )
    for step, instruction in enumerate(program.instructions):
        declared = layouts_of(program, instruction, table)
        pairs = [
            *((slot, _at(declared.inputs, i)) for i, slot in enumerate(instruction.inputs)),
            *((slot, _at(declared.outputs, i)) for i, slot in enumerate(instruction.outputs)),
        ]
        layouts_found = {program.slots[slot].layout for slot, _ in pairs if slot >= 0}
        if declared.any or (instruction.op in MOVES and instruction.op != RELAYOUT):
            is_wrong = len(layouts_found) > 1
        else:
            is_wrong = instruction.op != RELAYOUT and any(
                program.slots[slot].layout != layout for slot, layout in pairs if slot >= 0
            )
        is_wrong = is_wrong or _cuts(program, instruction)
        if is_wrong:
            listed = ", ".join(str(program.slots[s].layout or "rows") for s, _ in pairs if s >= 0)
            raise broken(f"step {step} ({instruction.op}) finds its tensors as {listed}")


def _cuts(program: Program, instruction: Instruction) -> bool:
    """True if a copy of a box cuts a block of the layout."""
    if "starts" not in instruction.attributes or "stops" not in instruction.attributes:
        return False
    if instruction.op not in MOVES:
        return False
    boxed = instruction.outputs[0] if instruction.op == "Store" else instruction.inputs[0]
    slot = program.slots[boxed]
    bounds = zip(instruction.ints("starts"), instruction.ints("stops"), strict=True)
    box = dict(zip(instruction.ints("axes"), bounds, strict=True))
    return slot.box(box) is None
