"""Inputs that two computations are compared on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smelt.errors import UsageError
from smelt.runtime.interface import Value


@dataclass(frozen=True)
class Case:
    """Inputs to compare on, the sizes of the symbolic dims, and what the inputs are."""

    values: Sequence[Value]
    sizes: Mapping[str, int]
    inputs: str


def of_sizes(cases: Sequence[Case], dims: Mapping[str, int | Sequence[int]]) -> list[Case]:
    """Those of ``cases`` where each of ``dims`` has its size, or one of its sizes.

    Raises UsageError E632 if there are none.
    """
    allowed = {name: (size,) if isinstance(size, int) else size for name, size in dims.items()}
    fit = [
        case
        for case in cases
        if all(case.sizes.get(name) in (None, *sizes) for name, sizes in allowed.items())
    ]
    if not fit:
        sizes = " ".join(f"{name}={','.join(map(str, each))}" for name, each in allowed.items())
        raise UsageError("E632", f"none of the given inputs has the sizes {sizes}")
    return fit
