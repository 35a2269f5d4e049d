"""Each public callable compiled for a target other than ONNX, and run there."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
from jax_surface.arguments import accepted
from jax_surface.judging import (
    Cases,
    Verdict,
    compared,
    computed,
    on_arrays,
    refusal,
    with_results,
)
from jax_surface.surface import Entry
from jax_surface.trials import trials

import smelt
from smelt.errors import ErrorList, Unsupported
from smelt.targets.base import Artifact


def verdicts_on(target: str, entry: Entry, most: int = 2) -> Iterator[Verdict]:
    """One verdict for each kind of arguments of 32 bits that JAX accepts."""
    for index, arguments in enumerate(accepted(entry, False, most)):
        function = on_arrays(entry, arguments)
        specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments.inputs]
        case = f"{target} {index}"
        try:
            artifact = smelt.compile(function, *specs, target=target, strict=True)
        except (ErrorList, Unsupported) as error:
            yield Verdict(entry, case, "refused", refusal(error))
            continue
        except Exception as error:  # noqa: BLE001 - the sweep is there to find whatever is raised
            yield Verdict(entry, case, "failed", f"{type(error).__name__}: {str(error)[:160]}")
            continue
        tried = trials(entry, arguments.inputs, computed(function, arguments.inputs))
        yield Verdict(entry, case, *_ran(entry, artifact, with_results(function, tried)))


def _ran(entry: Entry, artifact: Artifact, cases: Cases) -> tuple[str, str]:
    for trial, wanted in cases:
        try:
            actual = [np.asarray(each) for each in artifact(*trial.inputs)]
        except Exception as error:  # noqa: BLE001 - as above
            return "failed", f"{trial.name}{type(error).__name__}: {str(error)[:160]}"
        problem = compared(entry, wanted, actual, trial.loose)
        if problem:
            return "wrong", f"{trial.name}{problem}"
    return "right", ""
