"""Random inputs for a comparison, at sizes at which the source runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from smelt.check.agreement import Dims, fixed_sizes, trial_sizes
from smelt.check.comparison_inputs import ComparisonInputs
from smelt.check.comparison_side import ComparisonSide
from smelt.errors import UsageError
from smelt.runtime.fitting_sizes import fitting
from smelt.runtime.inputs import LARGEST, Mode
from smelt.runtime.interface import Interface
from smelt.runtime.named_inputs import Maker


def random_cases(
    first: ComparisonSide,
    second: ComparisonSide,
    dims: Dims | None,
    seed: int,
    modes: Sequence[Mode],
) -> Iterator[ComparisonInputs]:
    """Yield random inputs at every size in every mode, for the types that one side declares.

    Raises UsageError E634 if neither side is a model.
    """
    sides = sorted((first, second), key=lambda side: side.model is None)
    makers = [side.make_inputs for side in sides if side.make_inputs is not None]
    interfaces = [side.interface for side in (first, second) if side.interface is not None]
    if not makers or not interfaces:
        raise UsageError(
            "E634",
            "random inputs are impossible: neither side is an ONNX model",
            fix="give inputs=[...], one array per input",
            why="functions do not declare the types of their arguments",
        )
    other: Interface | None = interfaces[1] if len(interfaces) > 1 else None
    if any(port.default is not None for port in interfaces[0].inputs):
        modes = (*modes, "moved")
    trials = trial_sizes(interfaces[0], other, dims)
    fixed_names = {*(dims or ()), *(fixed_sizes(interfaces[0], other) if other else ())}
    attempt = partial(_run_at, first, makers[0])
    fitted = fitting(interfaces[0], trials, fixed_names, attempt, first.model or second.model)
    for index, sizes in enumerate(fitted):
        for mode in modes:
            if mode in LARGEST and index < len(fitted) - 1:
                continue  # once is enough: large values test elements, not sizes
            yield ComparisonInputs(makers[0](sizes, seed + index, mode), sizes, mode)


def _run_at(source: ComparisonSide, make: Maker, sizes: Mapping[str, int]) -> None:
    """Run the source on random inputs at ``sizes``."""
    source.run(*make(sizes, 0, "normal"))
