"""The inputs on which two computations are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from smelt.errors import UsageError
from smelt.ir.floats import is_float
from smelt.runtime.inputs import LARGEST
from smelt.runtime.interface import Value


@dataclass(frozen=True)
class ComparisonInputs:
    """Inputs of a comparison, the sizes of symbolic dims, and the kind of the inputs.

    ``inputs`` is a mode of random inputs, such as ``wide``, or ``given``.
    """

    values: Sequence[Value]
    sizes: Mapping[str, int]
    inputs: str


def is_within_domain(case: ComparisonInputs, outputs: Sequence[Value]) -> bool:
    """False if made-up inputs are too large: the source itself returns NaN or infinity on them.

    Inputs of the user are always within the domain.
    """
    if case.inputs not in LARGEST:
        return True
    arrays = [value for value in outputs if isinstance(value, np.ndarray) and is_float(value.dtype)]
    return all(np.isfinite(array.astype(np.float64)).all() for array in arrays)


def of_sizes(
    cases: Sequence[ComparisonInputs], dims: Mapping[str, int | Sequence[int]]
) -> list[ComparisonInputs]:
    """Return the cases in which each dim of ``dims`` has one of the given sizes.

    Raises UsageError E632 if there are none.
    """
    allowed = {name: (size,) if isinstance(size, int) else size for name, size in dims.items()}
    fit = [
        case
        for case in cases
        if all(case.sizes.get(name) in (None, *sizes) for name, sizes in allowed.items())
    ]
    if not fit:
        sizes = " ".join(f"{name}={','.join(map(str, some))}" for name, some in allowed.items())
        raise UsageError(
            "E632",
            f"none of the given inputs has the sizes {sizes}",
            why="the model has fixed sizes, and no sample fits them",
            fix="give inputs of these sizes",
        )
    return fit
