"""Convert every public callable, and hold what comes out against JAX.

python -m jax_surface.sweep [--only jax.numpy] [--types x32 x64 narrow]
                            [--write docs/jax-coverage.md]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax_surface import symbolic
from jax_surface.arguments import Arguments, accepted, function_of, narrowed
from jax_surface.compare import SPECIFIED, differs
from jax_surface.page import Results
from jax_surface.patience import jax_computes
from jax_surface.surface import Entry, entries
from jax_surface.trials import Trial, trials
from jax_surface.worker import Task, answered

import smelt
from smelt.errors import ErrorList, SmeltError
from smelt.runtime.runner import Runner, open_runner

SYMBOLIC = ("jax.numpy", "jax.lax", "jax.nn")
"""Modules whose callables are also converted for any leading size."""

KEPT = Path("build/jax_surface.json")
"""What earlier sweeps found."""


@dataclass(frozen=True)
class Verdict:
    """``kind``: right, wrong, refused or failed, which is an error that is none of ours."""

    entry: Entry
    case: str
    kind: str
    why: str = ""


def verdicts(entry: Entry, wide: bool, most: int = 3) -> Iterator[Verdict]:
    """One verdict for each kind of arguments that JAX accepts, and one for any leading size."""
    with jax.enable_x64(True) if wide else nullcontext():
        for index, arguments in enumerate(accepted(entry, wide, most)):
            case = f"{'x64' if wide else 'x32'} {index}"
            function = _function(entry, arguments)
            yield Verdict(entry, case, *_verdict(entry, arguments, function, wide))
            if entry.module in SYMBOLIC and symbolic.applies(arguments):
                judged = _symbolic(entry, arguments, function, wide)
                if judged is not None:
                    yield Verdict(entry, f"{case} B", *judged)


def narrow_verdicts(entry: Entry, most: int = 3) -> Iterator[Verdict]:
    """One verdict for each narrow type in place of float32 or int32, where JAX accepts it."""
    for index, arguments in enumerate(accepted(entry, False, most)):
        for name, changed in narrowed(entry, arguments):
            function = _function(entry, changed)
            yield Verdict(entry, f"{name} {index}", *_verdict(entry, changed, function, False))


def _function(entry: Entry, arguments: Arguments) -> Callable[..., Any]:
    """The callable of its arrays, with results that an ONNX interface can carry."""
    computed = function_of(entry, arguments)
    return lambda *arrays: [
        _parts(leaf) for leaf in jax.tree.leaves(computed(*arrays)) if isinstance(leaf, jax.Array)
    ]


def _computed(function: Callable[..., Any], inputs: list[np.ndarray]) -> list[np.ndarray]:
    """What JAX gives."""
    with jax_computes():
        return [np.asarray(leaf) for leaf in function(*map(jnp.asarray, inputs))]


def _verdict(
    entry: Entry, arguments: Arguments, function: Callable[..., Any], wide: bool
) -> tuple[str, str]:
    inputs = arguments.inputs
    specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in inputs]
    try:
        model = smelt.trace(function, *specs, x64=wide)
    except (ErrorList, SmeltError) as error:
        return "refused", _refusal(error)
    except Exception as error:  # noqa: BLE001 - the sweep is there to find whatever is raised
        return "failed", f"{type(error).__name__}: {str(error)[:160]}"
    tried = trials(entry, inputs, _computed(function, inputs))
    return _judged(entry, model, _cases(function, tried))


def _symbolic(
    entry: Entry, arguments: Arguments, function: Callable[..., Any], wide: bool
) -> tuple[str, str] | None:
    """None where JAX itself takes no symbol for the size, which then asks nothing of smelt."""
    if symbolic.is_misjudged(function, arguments):
        return None
    try:
        model = symbolic.traced(function, arguments, wide)
    except (ErrorList, SmeltError) as error:
        return ("refused", _refusal(error)) if symbolic.in_jax(function, arguments) else None
    except Exception as error:  # noqa: BLE001 - the sweep is there to find whatever is raised
        why = f"{type(error).__name__}: {str(error)[:160]}"
        return ("failed", why) if symbolic.in_jax(function, arguments) else None
    sizes = (Trial(f"B = {len(x)}, ", [x]) for x in symbolic.inputs(arguments))
    return _judged(entry, model, _cases(function, sizes))


def _cases(
    function: Callable[..., Any], tried: Iterable[Trial]
) -> list[tuple[Trial, list[np.ndarray]]]:
    """Each trial with what JAX computes; where JAX refuses there is nothing to compare."""
    cases = []
    for trial in tried:
        try:
            results = _computed(function, trial.inputs)
        except Exception:  # noqa: BLE001 - a callable may refuse a size in any way it likes
            continue
        cases.append((trial, results))
    return cases


def _refusal(error: SmeltError | ErrorList) -> str:
    errors = error.errors if isinstance(error, ErrorList) else [error]
    return "; ".join(f"{e.code} {e.what}: {e.why}" for e in errors)


def _judged(
    entry: Entry, model: Any, cases: list[tuple[Trial, list[np.ndarray]]]
) -> tuple[str, str]:
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
            problem = _compared(entry, wanted, actual, trial.loose)
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


def _compared(entry: Entry, wanted: list[np.ndarray], actual: list[np.ndarray], loose: bool) -> str:
    """What is wrong with the outputs, empty if nothing."""
    specified = SPECIFIED.get(entry.name)
    if specified is not None and len(wanted) == len(actual):
        wanted, actual = specified(wanted), specified(actual)
    for index, (want, got) in enumerate(zip(wanted, actual, strict=True)):
        problem = differs(want, got, loose)
        if problem:
            return f"output {index}: {problem}"
    return ""


def _parts(leaf: Any) -> Any:
    """Keys as their bits, complex numbers as pairs: what an ONNX interface can carry."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    if jnp.iscomplexobj(leaf):
        return jnp.stack([leaf.real, leaf.imag], -1)
    return leaf


def verdicts_of(entry: Entry, types: str) -> Iterator[Verdict]:
    """The verdicts in the types of one kind: x32, x64 or narrow."""
    return narrow_verdicts(entry) if types == "narrow" else verdicts(entry, types == "x64")


def main() -> None:
    """Sweep a part of the surface, and print or write the page with what earlier sweeps found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="what the paths of the callables start with")
    parser.add_argument("--types", nargs="+", choices=("x32", "x64", "narrow"))
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
        options.write.write_text(kept.page())


if __name__ == "__main__":
    main()
