"""One operator of the domain ``smelt``, compiled for the host and held against its reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from smelt import operators
from smelt.native.schedule import planned
from smelt.program.instruction import Program
from smelt.targets.base import Artifact

Agrees: TypeAlias = Callable[..., list[np.ndarray]]


def source(name: str, outputs: int, *given: np.ndarray, **attributes: int) -> str:
    """A model of one node of it."""
    types = {"float32": "float", "float64": "double"}
    dims = [f"{types[str(a.dtype)]}[{','.join(map(str, a.shape))}]" for a in given]
    inputs = ", ".join(f"{kind} x{i}" for i, kind in enumerate(dims))
    results = ", ".join(f"y{i}" for i in range(outputs))
    listed = ", ".join(f"{key}={value}" for key, value in attributes.items())
    names = ", ".join(f"x{i}" for i in range(len(given)))
    call = f"smelt.{name}<{listed}>({names})" if listed else f"smelt.{name}({names})"
    return f"g ({inputs}) => ({results}) {{ {results} = {call} }}"


def agreement(
    compile_host: Callable[[str], Artifact], choose: Callable[[Program], None], domain: str
) -> Agrees:
    """What holds an operator against its reference, and sees that ``choose`` has a kernel of
    ``domain`` compute it."""

    def check(name: str, *given: np.ndarray, **attributes: int) -> list[np.ndarray]:
        operator = operators.find("smelt", name)
        assert operator is not None
        expected = operator.reference(given, attributes)
        artifact = compile_host(source(name, len(expected), *given, **attributes))
        compiled = artifact.opened().compiled
        results = artifact(*given)
        assert compiled.why == ""
        ordered = planned(compiled.program.copy(), "host", (choose,))
        assert [step.op for step in ordered.instructions] == [f"{domain}::{name}"]
        tolerance = 2e-4 if given[0].dtype == np.float32 else 1e-10
        for result, wanted in zip(results, expected, strict=True):
            assert result.dtype == wanted.dtype
            np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)
        return list(results)

    return check
