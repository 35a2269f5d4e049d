"""Convert every public callable, and hold what comes out against JAX.

python -m jax_surface.sweep [--only jax.numpy] [--types x32 x64 narrow host c]
                            [--write docs/jax-coverage.md]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax_surface import symbolic
from jax_surface.arguments import Arguments, accepted, narrowed
from jax_surface.judging import (
    Cases,
    Verdict,
    compared,
    computed,
    on_arrays,
    refusal,
    with_results,
)
from jax_surface.on_targets import verdicts_on
from jax_surface.page import Results
from jax_surface.surface import Entry, entries
from jax_surface.trials import Trial, trials
from jax_surface.worker import TARGETS, Task, answered

import smelt
from smelt.errors import ErrorList, SmeltError
from smelt.runtime.runner import Runner, open_runner

SYMBOLIC = ("jax.numpy", "jax.lax", "jax.nn")
"""Modules whose callables are also converted for any leading size."""

KEPT = Path("build/jax_surface.json")
"""What earlier sweeps found."""


def verdicts(entry: Entry, wide: bool, most: int = 3) -> Iterator[Verdict]:
    """One verdict for each kind of arguments that JAX accepts, and one for any leading size."""
    with jax.enable_x64(True) if wide else nullcontext():
        for index, arguments in enumerate(accepted(entry, wide, most)):
            case = f"{'x64' if wide else 'x32'} {index}"
            function = on_arrays(entry, arguments)
            yield Verdict(entry, case, *_verdict(entry, arguments, function, wide))
            if entry.module in SYMBOLIC and symbolic.applies(arguments):
                judged = _symbolic(entry, arguments, function, wide)
                if judged is not None:
                    yield Verdict(entry, f"{case} B", *judged)


def narrow_verdicts(entry: Entry, most: int = 3) -> Iterator[Verdict]:
    """One verdict for each narrow type in place of float32 or int32, where JAX accepts it."""
    for index, arguments in enumerate(accepted(entry, False, most)):
        for name, changed in narrowed(entry, arguments):
            function = on_arrays(entry, changed)
            yield Verdict(entry, f"{name} {index}", *_verdict(entry, changed, function, False))


def _verdict(
    entry: Entry, arguments: Arguments, function: Callable[..., Any], wide: bool
) -> tuple[str, str]:
    inputs = arguments.inputs
    specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in inputs]
    try:
        model = smelt.trace(function, *specs, x64=wide)
    except (ErrorList, SmeltError) as error:
        return "refused", refusal(error)
    except Exception as error:  # noqa: BLE001 - the sweep is there to find whatever is raised
        return "failed", f"{type(error).__name__}: {str(error)[:160]}"
    tried = trials(entry, inputs, computed(function, inputs))
    return _judged(entry, model, with_results(function, tried))


def _symbolic(
    entry: Entry, arguments: Arguments, function: Callable[..., Any], wide: bool
) -> tuple[str, str] | None:
    """None where JAX itself takes no symbol for the size, which then asks nothing of smelt."""
    if symbolic.is_misjudged(function, arguments):
        return None
    try:
        model = symbolic.traced(function, arguments, wide)
    except (ErrorList, SmeltError) as error:
        return ("refused", refusal(error)) if symbolic.in_jax(function, arguments) else None
    except Exception as error:  # noqa: BLE001 - the sweep is there to find whatever is raised
        why = f"{type(error).__name__}: {str(error)[:160]}"
        return ("failed", why) if symbolic.in_jax(function, arguments) else None
    sizes = (Trial(f"B = {len(x)}, ", [x]) for x in symbolic.inputs(arguments))
    return _judged(entry, model, with_results(function, sizes))


def _judged(entry: Entry, model: Any, cases: Cases) -> tuple[str, str]:
    """The model as traced, then optimized, on every trial."""
    for optimized in (False, True):
        stage = "optimized, " if optimized else ""
        try:
            model = smelt.optimize(model) if optimized else model
            runner = _runner(model)
        except SmeltError as error:
            return "failed", f"{stage}{error.code} {error.what}: {str(error.why)[:160]}"
        for trial, wanted in cases:
            try:
                actual = [np.asarray(each) for each in runner(*trial.inputs)]
            except SmeltError as error:
                return "failed", f"{trial.name}{stage}{error.code} {str(error.why)[:160]}"
            problem = compared(entry, wanted, actual, trial.loose)
            if problem:
                return "wrong", f"{trial.name}{stage}{problem}"
    return "right", ""


def _runner(model: Any) -> Runner:
    """ONNX Runtime, but for operators that only the host target has."""
    try:
        return open_runner(model, "onnxruntime")
    except SmeltError as error:
        if "is not a registered function/op" not in str(error.why):
            raise
        return open_runner(model, "reference")


def verdicts_of(entry: Entry, types: str) -> Iterator[Verdict]:
    """The verdicts in the types of one kind, x32, x64 or narrow, or in x32 on another target."""
    if types in TARGETS:
        return verdicts_on(types, entry)
    return narrow_verdicts(entry) if types == "narrow" else verdicts(entry, types == "x64")


def main() -> None:
    """Sweep a part of the surface, and print or write the page with what earlier sweeps found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="what the paths of the callables start with")
    parser.add_argument("--types", nargs="+", choices=("x32", "x64", "narrow", *TARGETS))
    parser.add_argument("--write", type=Path, help="the page to write")
    options = parser.parse_args()
    kept = Results() if options.write is None else Results.load(KEPT)
    known = [str(entry) for entry in entries()]
    kept.rows = {task: rows for task, rows in kept.rows.items() if task.path in known}
    paths = [path for path in known if path.startswith(options.only)]
    for task, rows in answered(
        [Task(path, types) for types in options.types or ("x32", "x64") for path in paths]
    ):
        kept.rows[task] = rows
        for row in rows:
            if row.kind != "right":
                print(*task, *row, flush=True)
        if options.write is not None:
            kept.save(KEPT)
    if options.write is None:
        print(kept.page())
    else:
        before = options.write.read_text() if options.write.exists() else ""
        options.write.write_text(kept.page(before))


if __name__ == "__main__":
    main()
