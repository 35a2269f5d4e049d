"""Run a StableHLO module on JAX arrays: each operator binds the equivalent primitive.

Under a JAX trace, this gives the equations of the exported function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from smelt.frontends.stablehlo import (  # noqa: F401 - each registers what it reads
    calls,
    control_flow,
    elementwise,
    indexing,
    jax_names,
    movement,
    products,
    reductions,
)
from smelt.frontends.stablehlo.decompositions import Decomposed
from smelt.frontends.stablehlo.liveness import Step, Steps, steps_of
from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.registry import READERS
from smelt.frontends.stablehlo.sizes import as_array, as_sizes, computed_sizes
from smelt.frontends.stablehlo.source_lines import SourceLine, call_at

EMPTY: Mapping[Any, Any] = {}


class Evaluator:
    """Evaluates one module; ``functions`` holds its functions by name.

    An MLIR value of the module stands for one array, or for sizes, during an evaluation.
    """

    def __init__(self, module: Any) -> None:
        """Prepare the evaluation of ``module``; ``function`` begins it."""
        self.functions: Mapping[str, Any] = jax_names.functions_of(module)
        self._decomposed = Decomposed(module, self.functions)
        # Arrays by MLIR value: one dict for each nested body that is being evaluated.
        self._known: list[dict[Any, Any]] = []
        # The call of the function that is being evaluated; None in the main function.
        self._call: Operation | None = None
        # Caches: needed operations by block, arrays by constant, source lines by location.
        self._steps: dict[Any, Steps] = {}
        self._constants: dict[Any, Any] = {}
        self._places: dict[Any, SourceLine | None] = {}

    def function(
        self, name: str, operands: Sequence[Any], call: Operation | None = None
    ) -> list[Any]:
        """Return the results of the function ``name``, called by the operation ``call``."""
        outer, self._known = self._known, []
        caller, self._call = self._call, call
        try:
            return self.run_body(self.functions[name].regions[0], operands)
        finally:
            self._known, self._call = outer, caller

    def run_body(self, region: Any, operands: Sequence[Any]) -> list[Any]:
        """Return the results of a body, which may read values of the bodies around it."""
        (block,) = region.blocks
        end = list(block.operations)[-1].operation
        values = self.results(block, operands, list(end.operands))
        # Sizes pass between functions; loops and branches return arrays.
        return values if end.name == "func.return" else [as_array(value) for value in values]

    def results(
        self,
        block: Any,
        operands: Sequence[Any],
        ends: Sequence[Any],
        precomputed: Mapping[Any, Any] = EMPTY,
    ) -> list[Any]:
        """Return the values ``ends`` of a body; ``precomputed`` holds values known in advance."""
        self._known.append(dict(zip(block.arguments, operands, strict=True)) | dict(precomputed))
        try:
            for step in self.steps(block, ends, frozenset(precomputed)).steps:
                self._step(step)
            return [self.value(end) for end in ends]
        finally:
            self._known.pop()

    def steps(
        self, block: Any, ends: Sequence[Any], precomputed: frozenset[Any] = frozenset()
    ) -> Steps:
        """Return the operations of ``block`` that compute ``ends`` from ``precomputed`` values."""
        key = (block, tuple(ends), precomputed)
        if key not in self._steps:
            self._steps[key] = steps_of(block, self._decomposed, ends, precomputed)
        return self._steps[key]

    def constant(self, op: Operation, read: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the array of the constant ``op``; ``read`` makes it at the first request."""
        if op.view not in self._constants:
            self._constants[op.view] = read()
        array: np.ndarray = self._constants[op.view]
        return array

    def dims(self, op: Operation, value: Any) -> tuple[Any, ...]:
        """Return the sizes that ``value`` holds, as dims of a shape.

        Raises Unsupported E102 if they are data-dependent.
        """
        dims = self.known_dims(value)
        if dims is None:
            raise op.unsupported("one of its sizes depends on the values of an input")
        return dims

    def known_dims(self, value: Any) -> tuple[Any, ...] | None:
        """Return the sizes that ``value`` holds, row by row; None if they are data-dependent."""
        if isinstance(value, np.ndarray):
            return tuple(value.reshape(-1).tolist())
        sizes = as_sizes(value)
        return None if sizes is None else sizes.dims

    def is_known(self, value: Any) -> bool:
        """True if ``value`` of the module has been computed."""
        return any(value in known for known in self._known)

    def value(self, value: Any) -> Any:
        """Return the array or the sizes of the MLIR value ``value``, from the innermost body."""
        for known in reversed(self._known):
            if value in known:
                return known[value]
        raise KeyError(value)

    def _step(self, step: Step) -> None:
        """Evaluate one step at the source line of its operation."""
        op = Operation(step.view, self._call)
        call_at(self._source_line(op), lambda: self._evaluate(op, step))

    def _source_line(self, op: Operation) -> SourceLine | None:
        """Return the source line of ``op``, cached because its text is long and often repeated."""
        if op.name == "stablehlo.constant":
            return None
        key = op.view.location, self._call
        if key not in self._places:
            self._places[key] = op.place()
        return self._places[key]

    def _evaluate(self, op: Operation, step: Step) -> None:
        """Compute the results of one step and record them in the innermost body.

        A recognized function computes them, else the arithmetic of sizes, else the operator's
        registered reader.
        """
        if step.function is not None:
            arrays = [as_array(self.value(operand)) for operand in step.operands]
            self._known[-1][step.view.results[0]] = step.function(*arrays)
            return
        operands = [self.value(operand) for operand in op.view.operands]
        outcome = None
        if len(op.view.results) == 1 and op.name.startswith("stablehlo."):
            outcome = computed_sizes(op, operands)
        if outcome is None:
            reader = READERS.get(op.name)
            if reader is None:
                raise op.unsupported("smelt has no reader for this operator", "E101")
            count = _ARRAY_OPERANDS.get(op.name, len(operands))
            operands = [*map(as_array, operands[:count]), *operands[count:]]
            outcome = reader(self, op, *operands)
        results = outcome if isinstance(outcome, list) else [outcome]
        for value, result in zip(op.view.results, results, strict=True):
            self._known[-1][value] = result


_ARRAY_OPERANDS: Mapping[str, int] = {
    **dict.fromkeys(("func.call", "stablehlo.composite", "stablehlo.custom_call"), 0),
    **dict.fromkeys(("stablehlo.while", "stablehlo.dynamic_iota"), 0),
    **dict.fromkeys(("stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_reshape"), 1),
    "stablehlo.real_dynamic_slice": 1,
    **dict.fromkeys((f"stablehlo.dynamic_{name}" for name in ("pad", "gather", "conv")), 2),
}
"""How many leading operands are arrays; the later operands may be sizes.

All operands of an operator that is not listed are arrays.
"""
