"""Check the arguments of a call of a model with data-dependent sizes, and run the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, UsageError
from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.ir.symbolic_dims.size_constraints import check_of
from smelt.program.instruction import Slot
from smelt.program.specialize import misfit
from smelt.targets.host.any_sizes.model import AnySizes, Planner
from smelt.targets.host.input_array import input_array
from smelt.targets.host.kernels.kernel import Array


class AnySizesRunner:
    """Runs a model; takes one array for each input, never writes it, and returns new arrays.

    Calls may run in parallel, except that a part computed by NumPy runs one call at a time.
    ``defaults`` are the arrays of inputs that may be None. Raises Unsupported, or an ErrorList, for
    a model without a Program at any sizes.
    """

    def __init__(self, model: ir.Model, planner: Planner, defaults: Mapping[int, Array]) -> None:
        """Plan a copy of ``model``, and record the types, sizes and defaults of its inputs."""
        self._run = AnySizes(model.clone(), planner)
        self._defaults = defaults
        self._check = check_of(model)
        self._slots = [
            Slot(value.dtype or ir.DataType.FLOAT, tuple(value.shape or ()), value.name or "")
            for value in model.graph.inputs
        ]
        self._ranked = [value.shape is not None for value in model.graph.inputs]

    @property
    def parts(self) -> int:
        """The number of parts that run one after another; data-dependent nodes count one each."""
        return self._run.parts

    def __call__(self, *inputs: Array | None) -> tuple[Array, ...]:
        """Run once. Raises UsageError E670 or E671 for inputs that do not fit, InvalidModel E321
        for an index out of range.
        """
        arrays = self._arrays(inputs)
        try:
            with np.errstate(all="ignore"):
                results = self._run(*arrays)
        except IndexError as error:
            raise InvalidModel(
                "E321",
                "an index is out of range as the model runs",
                why=str(error),
                fix="check the inputs that hold indices: each must be within its axis",
            ) from error
        return _unshared(results, arrays)

    def _arrays(self, inputs: Sequence[Array | None]) -> list[Array]:
        """Return the checked inputs of a call; raises UsageError E670 or E671."""
        if len(inputs) != len(self._slots):
            raise UsageError(
                "E671",
                f"{len(inputs)} arrays for {len(self._slots)} inputs",
                why="each input takes one array",
                fix="pass one array per input; `smelt inspect` shows the inputs",
            )
        sizes: dict[str, int] = {}
        arrays = []
        for i, (slot, value) in enumerate(zip(self._slots, inputs, strict=True)):
            array = input_array(slot, self._defaults.get(i) if value is None else value)
            if self._ranked[i] and not _fits(slot, array.shape, sizes):
                raise misfit(slot.name, array.shape, slot.shape)
            arrays.append(array)
        if self._check is not None:
            self._check(tuple(array.shape for array in arrays))
        return arrays


def _fits(slot: Slot, shape: Sequence[int], sizes: dict[str, int]) -> bool:
    """True if ``shape`` fits the dims of ``slot``: numbers are equal, and a symbol has one size.

    ``sizes`` has the sizes of symbols in earlier inputs, and gets those of this one.
    """
    if len(shape) != len(slot.shape):
        return False
    for dim, size in zip(slot.shape, shape, strict=True):
        if isinstance(dim, int) and dim != size:
            return False
        named = isinstance(dim, ir.SymbolicDim) and symbols_of(dim) == {dim.value}
        if named and sizes.setdefault(str(dim), size) != size:
            return False
    return True


def _unshared(results: Sequence[Array], inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return ``results``, copied where they share memory with inputs or each other."""
    fresh: list[Array] = []
    for result in results:
        shared = any(np.may_share_memory(result, other) for other in (*inputs, *fresh))
        owned = result.flags.writeable and result.flags.c_contiguous
        fresh.append(result if owned and not shared else np.array(result, order="C"))
    return tuple(fresh)
