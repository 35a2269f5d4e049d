"""Cut a model at its data-dependent nodes and run it part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from smelt.ir import constants
from smelt.ir.names import name_values
from smelt.ir.partition import Part, connect, models_of_parts, partition
from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.targets.host.any_sizes.node import runner_of_node
from smelt.targets.host.any_sizes.planning import Runner
from smelt.targets.host.kernels.kernel import Array

if TYPE_CHECKING:
    from smelt.targets.host.any_sizes.model import Planner


@dataclass(frozen=True)
class Step:
    """One part: its runner, and the numbers of values that it reads, writes and frees."""

    run: Runner
    reads: Sequence[int]
    writes: Sequence[int]
    drops: Sequence[int]


class Chain:
    """Runs the parts of ``model``, which is consumed; each node in ``decided`` is its own part."""

    def __init__(self, model: ir.Model, decided: set[ir.Node], planner: Planner) -> None:
        """Cut ``model`` into parts and plan each of them.

        Values have numbers: first the inputs of the model, then the values that parts write, then
        constant outputs. ``_steps`` has the parts, with the numbers that they read and write.
        """
        name_values(model)
        parts = _parts(model, decided)
        numbers = {value: i for i, value in enumerate(model.graph.inputs)}
        for part in parts:
            for value in part.writes:
                numbers.setdefault(value, len(numbers))
        self._fixed: dict[int, Array] = {}
        for value in model.graph.outputs:
            tensor = constants.tensor_of(value)
            if tensor is not None and value not in numbers:
                numbers[value] = len(numbers)
                self._fixed[numbers[value]] = np.asarray(tensor.numpy())
        self._outputs = [numbers[value] for value in model.graph.outputs]
        reads_and_writes = [
            (
                [numbers[read_value] for read_value in part.reads],
                [numbers[written_value] for written_value in part.writes],
            )
            for part in parts
        ]
        runs = [
            planner.runner_of_part(model_of_part)
            if part.taken
            else runner_of_node(model_of_part, planner)
            for part, model_of_part in zip(parts, models_of_parts(model, parts), strict=True)
        ]
        self._steps = _steps(runs, reads_and_writes, set(self._outputs))

    @property
    def parts(self) -> int:
        """The number of parts that run one after another."""
        return len(self._steps)

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        """Run the parts in order, and free each value after its last reader."""
        values = {**self._fixed, **dict(enumerate(arrays))}
        for step in self._steps:
            results = step.run(*(values[number] for number in step.reads))
            values.update(zip(step.writes, results, strict=True))
            for number in step.drops:
                values.pop(number, None)
        return tuple(values[number] for number in self._outputs)


def _steps(
    runs: Sequence[Runner], reads_and_writes: Sequence[tuple[list[int], list[int]]], kept: set[int]
) -> list[Step]:
    """Return the parts as Steps; each drops its values that no later part and no output reads."""
    steps: list[Step] = []
    later_reads = set(kept)
    for run, (reads, writes) in zip(reversed(runs), reversed(reads_and_writes), strict=True):
        last_uses = [number for number in (*reads, *writes) if number not in later_reads]
        later_reads.update(reads)
        steps.append(Step(run, reads, writes, last_uses))
    return steps[::-1]


def _parts(model: ir.Model, decided: set[ir.Node]) -> list[Part]:
    """Return the parts of ``model`` in order; each of the ``decided`` nodes is a part of its own.

    Each part has ``taken``, True for nodes that are planned together, and the values that it reads
    and writes.
    """
    parts: list[Part] = []
    for part in partition(model.graph, lambda node: node not in decided):
        single = [Part(False, [node]) for node in part.nodes]
        parts += [Part(True, part.nodes)] if part.taken else single
    connect(model.graph, parts)
    known = list(model.graph.inputs)
    for part in parts:
        _add_size_inputs(part, known)
        known += part.writes
    return parts


def _add_size_inputs(part: Part, known: Sequence[ir.Value]) -> None:
    """Add values of ``known`` to the reads of ``part``, so that each open size is a dim of a read.

    A part is planned as a model by itself, which learns a size only from the shape of an input.
    """
    values = {*part.reads, *(value for node in part.nodes for value in node.outputs)}
    symbols = {name for value in values for dim in value.shape or () for name in symbols_of(dim)}
    symbols -= {str(dim) for value in part.reads for dim in value.shape or ()}
    for value in known if part.taken and symbols else ():
        extra_reads = {str(dim) for dim in value.shape or ()} & symbols
        if extra_reads:
            part.reads.append(value)
            symbols -= extra_reads
