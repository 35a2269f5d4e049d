"""Searches tile sizes that fit a memory budget at the lowest cost, by default the bytes moved.

Along each axis only sizes that give different numbers of tiles are tried, so their count grows with
the root of the axis; the last axis gets the largest size that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, permutations, product
from typing import TypeAlias

from smelt.program.chips.memories import Place, checked, one_place
from smelt.program.chips.summing import STAGE, SUMMED, Summing
from smelt.program.chips.tile_bands import Bands, Tiling, end_cuts
from smelt.program.chips.tile_regions import REGIONS, Box, RegionOf
from smelt.program.chips.tiling import Sizes, cuts_of, merged_boxes, part_of, split, tile_of
from smelt.program.instruction import Instruction, Program
from smelt.program.memory import aligned
from smelt.program.storage import NeedsOf, no_needs

ALWAYS_TRIED_AXES = 2
"""Up to so many axes are cut together in any case; more only if no tiles of fewer axes fit."""

NO_SUMS: Mapping[str, Summing] = {}
"""No operator sums in parts."""

Cost: TypeAlias = Callable[[Program, Instruction, Tiling], float]


def bytes_moved(program: Program, instruction: Instruction, tiling: Tiling) -> float:
    """Return the default cost: the bytes that a DMA copies."""
    return tiling.moved


def tile_to_fit(
    program: Program,
    budget: int | Mapping[str, int],
    axes: Sequence[int] = (2, 1),
    regions: Mapping[str, RegionOf] = REGIONS,
    needs_of: NeedsOf = no_needs,
    *,
    place: Place = one_place,
    align: int = 1,
    deepest: int = 3,
    cost: Cost = bytes_moved,
    sums: Mapping[str, Summing] = NO_SUMS,
) -> Program:
    """Return ``program`` with tiles for each instruction that uses more than ``budget`` bytes.

    Tiles are cut along at most ``deepest`` of ``axes`` so that ``cost`` is lowest, then so that
    there are few tiles. A third axis is cut only if two do not suffice. ``budget`` is that of the
    one memory, or of several by name; ``place`` says in which one an operand lies. Sizes are
    rounded up to ``align``. Operators in ``sums`` may also sum in parts: the part size is that of
    ``SUMMED`` in a ``Tiling``. An instruction that cannot be made to fit stays whole.
    """
    tiled = replace(program, slots=list(program.slots), instructions=[])
    budgets = budget if isinstance(budget, Mapping) else {"": budget}
    place = checked(place, budgets)
    search = _Search(tiled, budgets, axes, regions, needs_of, place, align, deepest, cost, sums)
    for instruction in program.instructions:
        tiled.instructions += search.tiles(instruction) or [instruction]
    return tiled


def misfit(
    program: Program,
    budget: int | Mapping[str, int],
    axes: Sequence[int] = (2, 1),
    regions: Mapping[str, RegionOf] = REGIONS,
    needs_of: NeedsOf = no_needs,
    *,
    place: Place = one_place,
    align: int = 1,
    deepest: int = 3,
    sums: Mapping[str, Summing] = NO_SUMS,
) -> str:
    """Return why ``tile_to_fit`` leaves an instruction too large; empty if it leaves none.

    ``accepts`` calls it on a node that ``lower_alone`` lowered.
    """
    budgets = budget if isinstance(budget, Mapping) else {"": budget}
    place = checked(place, budgets)
    settings = (budgets, axes, regions, needs_of, place, align, deepest, bytes_moved, sums)
    search = _Search(program, *settings)
    reasons = (search.misfit(instruction) for instruction in program.instructions)
    return next((why for why in reasons if why), "")


@dataclass
class _Search:
    """Searches tiles for one program; the fields are the options of ``tile_to_fit``."""

    program: Program
    budget: Mapping[str, int]
    axes: Sequence[int]
    regions: Mapping[str, RegionOf]
    needs_of: NeedsOf
    place: Place
    align: int
    deepest: int
    cost: Cost
    sums: Mapping[str, Summing]
    bands: Bands = field(init=False)
    """The bands of the instruction whose tiles are searched."""

    def tiles(self, instruction: Instruction) -> list[Instruction] | None:
        """Return the tiles at the lowest cost; None if it fits whole or cannot be made to fit."""
        if instruction.op not in self.regions or self._fits(self._bytes_used(instruction, {}, {})):
            return None
        self.bands = Bands(self.program, instruction, self.regions, self.sums.get(instruction.op))
        summing = self.sums.get(instruction.op)
        tilings: list[tuple[float, int, Sizes]] = []
        for depth in range(self.deepest + 1):
            if depth > ALWAYS_TRIED_AXES and tilings:
                break
            for sizes in self._sizes(instruction, depth):
                tiling = self.bands.tiling(sizes)
                if tiling is not None:
                    cost = self.cost(self.program, instruction, tiling)
                    tilings.append((cost, tiling.tiles, sizes))
        for _, _, sizes in sorted(tilings, key=lambda t: (*t[:2], len(t[2]))):
            if self._fits(self._largest(instruction, sizes)):
                tiles = split(self.program, instruction, sizes, self.regions, summing)
                if tiles is not None:
                    return tiles
        return None

    def _terms(self, instruction: Instruction) -> list[dict[int, int]]:
        """Return the sizes along ``SUMMED`` to try: none, and each size of parts."""
        summing = self.sums.get(instruction.op)
        if summing is None:
            return [{}]
        return [{}, *({SUMMED: size} for size in summing.sizes(self.program, instruction))]

    def misfit(self, instruction: Instruction) -> str:
        """Return by how much the smallest tile is too large; empty if it fits."""
        touched: Mapping[str, int] | None = self._bytes_used(instruction, {}, {})
        if self._fits(touched):
            return ""
        self.bands = Bands(self.program, instruction, self.regions, self.sums.get(instruction.op))
        axes = self._axes(instruction) if instruction.op in self.regions else []
        for order in permutations(axes, min(self.deepest, len(axes))):
            smallest = self._smallest(instruction, order)
            if self._fits(smallest):
                return ""
            touched = smallest or touched
        assert touched is not None
        excess = {space: size for space, size in touched.items() if size > self.budget[space]}
        return ", ".join(
            f"its smallest tile takes {size} bytes of {self.budget[space]}"
            + (f" in {space}" if space else "")
            for space, size in excess.items()
        )

    def _smallest(self, instruction: Instruction, order: Sequence[int]) -> Mapping[str, int] | None:
        """Return the bytes of the smallest valid tile cut along all axes of ``order``, by memory.

        Tiles of one row may be invalid, with a window over padding alone, so sizes are doubled.
        """
        shape = self.program.slots[instruction.outputs[0]].sizes
        size = 1
        while size < 2 * max(shape):
            steps = {
                axis: max(self._step(instruction, axis), min(size, shape[axis])) for axis in order
            }
            touched = self._max_bytes(instruction, {**steps, **self._terms(instruction)[-1]})
            if touched is not None:
                return touched
            size *= 2
        return None

    def _axes(self, instruction: Instruction) -> list[int]:
        """Return the axes along which ``instruction`` may be cut."""
        shape = self.program.slots[instruction.outputs[0]].sizes
        return [axis for axis in self.axes if axis < len(shape) and shape[axis] > 1]

    def _step(self, instruction: Instruction, axis: int) -> int:
        """Return the unit of sizes along ``axis``: a block of the result's layout."""
        layout = self.program.slots[instruction.outputs[0]].layout
        return 1 if layout is None else layout.block(axis)

    def _sizes(self, instruction: Instruction, depth: int) -> Iterator[Sizes]:
        """Yield sizes along ``depth`` axes whose tiles fit, in each order of the loops."""
        shape = self.program.slots[instruction.outputs[0]].sizes
        for order in permutations(self._axes(instruction), depth):
            candidates = [
                _distinct_sizes(shape[axis], self._step(instruction, axis)) for axis in order
            ]
            for terms in self._terms(instruction):
                if not order:
                    fits_whole = terms and self._fits(self._max_bytes(instruction, terms))
                    yield from [terms] if fits_whole else []
                    continue
                for outer in product(*candidates[:-1]):
                    yield from self._widest(instruction, order, outer, candidates[-1], terms)

    def _widest(
        self,
        instruction: Instruction,
        order: Sequence[int],
        outer: Sequence[int],
        last: list[int],
        terms: Sizes,
    ) -> Iterator[Sizes]:
        """Yield ``outer`` and ``terms`` with the largest of ``last`` whose tiles fit, if one does.

        Bisection finds it. Sizes that give no valid tiles, as inside a group, are skipped.
        """

        def sizes(index: int) -> Sizes:
            """Return the sizes of all axes, with that of the last axis at ``last[index]``."""
            return {**dict(zip(order, (*outer, last[index]), strict=True)), **terms}

        low, high = 0, len(last)
        while low < high:
            middle = (low + high) // 2
            touched = self._max_bytes(instruction, sizes(middle))
            if touched is None or self._fits(touched):
                high = middle
            else:
                low = middle + 1
        fitting = (
            i for i in range(low, len(last)) if self._fits(self._max_bytes(instruction, sizes(i)))
        )
        yield from (sizes(i) for i in islice(fitting, 1))

    def _max_bytes(self, instruction: Instruction, sizes: Sizes) -> Mapping[str, int] | None:
        """Return an upper bound of the bytes of a tile of ``sizes``, by memory; None if invalid.

        Each axis is measured by itself; an operand's dim that several axes cut gets the smallest.
        """
        boxes: dict[int, Box] = {}
        for axis, size in sizes.items():
            extents = self.bands.extents(axis, size)
            if extents is None:
                return None
            for position, lengths in extents.items():
                box = boxes.setdefault(position, {})
                for dim, length in lengths.items():
                    box[dim] = (0, min(length, box.get(dim, (0, length))[1]))
        result = {axis: (0, size) for axis, size in sizes.items() if axis != SUMMED}
        return self._bytes_used(instruction, boxes, result, summed=SUMMED in sizes)

    def _largest(self, instruction: Instruction, sizes: Sizes) -> Mapping[str, int] | None:
        """Return the bytes of the largest tile of ``sizes``, by memory; None if one is invalid."""
        shape = self.program.slots[instruction.outputs[0]].sizes
        largest: dict[str, int] = {}
        cuts = {axis: cuts_of(shape[axis], n) for axis, n in sizes.items() if axis != SUMMED}
        summed = self.bands.extents(SUMMED, sizes[SUMMED]) if SUMMED in sizes else {}
        terms = {p: {d: (0, n) for d, n in dims.items()} for p, dims in (summed or {}).items()}
        for bounds in product(*map(end_cuts, cuts.values())):
            box = dict(zip(cuts, bounds, strict=True))
            tile = tile_of(self.program, instruction, box, self.regions)
            if tile is None:
                return None
            boxes = merged_boxes(tile.inputs, terms)
            touched = self._bytes_used(instruction, boxes, tile.box, summed=SUMMED in sizes)
            for space, size in touched.items():
                largest[space] = max(largest.get(space, 0), size)
        return largest

    def _bytes_used(
        self, instruction: Instruction, boxes: Mapping[int, Box], box: Box, *, summed: bool = False
    ) -> dict[str, int]:
        """Return the bytes that an instruction, or a tile of it, uses at once, by memory.

        One that is ``summed`` in parts also holds the old and the new partial sum.
        """
        parts: dict[tuple[str, int, str], int] = {}
        operands = [(slot, i, boxes.get(i, {})) for i, slot in enumerate(instruction.inputs)]
        for slot, position, part in (*operands, *((s, None, box) for s in instruction.outputs)):
            if slot >= 0:
                nbytes = part_of(self.program.slots[slot], part).nbytes
                parts[self.place(instruction, position), slot, str(part)] = nbytes
        touched = dict.fromkeys(self.budget, 0)
        if summed:
            summing, result = self.sums[instruction.op], self.program.slots[instruction.outputs[0]]
            nbytes = summing.partial_sum(part_of(result, box)).nbytes
            middle = replace(instruction, attributes={**instruction.attributes, STAGE: "middle"})
            for position in (summing.carried, None):
                touched[self.place(middle, position)] += aligned(nbytes, self.align)
        for (space, _, _), size in parts.items():
            touched[space] += aligned(size, self.align)
        workspace = self.needs_of(instruction).workspace
        if workspace:
            touched[self.place(instruction, None)] += aligned(workspace, self.align)
        return touched

    def _fits(self, touched: Mapping[str, int] | None) -> bool:
        """True if the bytes ``touched`` are within the budget of each memory."""
        return touched is not None and all(n <= self.budget[s] for s, n in touched.items())


def _distinct_sizes(length: int, step: int) -> list[int]:
    """Return the multiples of ``step`` that cut ``length`` into different numbers of tiles."""
    units = -(-length // step)
    sizes = {-(-units // count) for count in range(1, units + 1)}
    return [size * step for size in sorted(sizes, reverse=True)]
