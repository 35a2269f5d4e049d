"""Convert every public callable, and hold what comes out against JAX.

python -m jax_surface.sweep [--only jax.numpy] [--narrow] [--write docs/jax-coverage.md]
"""

from __future__ import annotations

import argparse
from collections import Counter
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
from jax_surface.surface import Entry, entries
from jax_surface.trials import Trial, trials

import smelt
from smelt.errors import ErrorList, SmeltError
from smelt.runtime.runner import Runner, open_runner

SYMBOLIC = ("jax.numpy", "jax.lax", "jax.nn")
"""Modules whose callables are also converted for any leading size."""


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
                kind, why = _symbolic(entry, arguments, function, wide)
                yield Verdict(entry, f"{case} B", kind, why)


def narrow_verdicts(entry: Entry, most: int = 3) -> Iterator[Verdict]:
    """One verdict for each narrow type in place of float32 or int32, where JAX accepts it."""
    for index, arguments in enumerate(accepted(entry, False, most)):
        for name, changed in narrowed(entry, arguments):
            function = _function(entry, changed)
            yield Verdict(entry, f"{name} {index}", *_verdict(entry, changed, function, False))


def _function(entry: Entry, arguments: Arguments) -> Callable[..., Any]:
    """The callable of its arrays, with results that an ONNX interface can carry."""
    computed = function_of(entry, arguments)
    return lambda *arrays: jax.tree.map(_parts, computed(*arrays))


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
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(function(*map(jnp.asarray, inputs)))]
    return _judged(entry, model, _cases(function, trials(entry, inputs, expected)))


def _symbolic(
    entry: Entry, arguments: Arguments, function: Callable[..., Any], wide: bool
) -> tuple[str, str]:
    try:
        model = symbolic.traced(function, arguments, wide)
    except (ErrorList, SmeltError) as error:
        return "refused", _refusal(error)
    except Exception as error:  # noqa: BLE001 - JAX itself refuses in any way it likes
        return "refused", f"by JAX: {type(error).__name__}"
    if symbolic.is_misjudged(function, arguments):
        return "refused", "JAX itself computes another shape where the size is a symbol"
    sizes = (Trial(f"B = {len(x)}, ", [x]) for x in symbolic.inputs(arguments))
    return _judged(entry, model, _cases(function, sizes))


def _cases(
    function: Callable[..., Any], tried: Iterable[Trial]
) -> list[tuple[Trial, list[np.ndarray]]]:
    """Each trial with what JAX computes; where JAX refuses there is nothing to compare."""
    cases = []
    for trial in tried:
        try:
            results = jax.tree.leaves(function(*map(jnp.asarray, trial.inputs)))
        except Exception:  # noqa: BLE001 - a callable may refuse a size in any way it likes
            continue
        cases.append((trial, [np.asarray(leaf) for leaf in results]))
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


def sweep(only: str = "", *, narrow: bool = False) -> list[Verdict]:
    """Verdicts over the surface, or over the callables whose path starts with ``only``.

    ``narrow``: in half floats and integers of 8 and 16 bits, and not in the usual types.
    """
    found: list[Verdict] = []
    for entry in entries():
        if str(entry).startswith(only):
            if narrow:
                found += narrow_verdicts(entry)
                continue
            for wide in (False, True):
                found += verdicts(entry, wide)
    return found


def table(found: list[Verdict]) -> str:
    """A Markdown page: a row for each module, then what is not right."""
    modules: dict[str, Counter[str]] = {}
    for verdict in found:
        # A size that nothing says is refused with reason, so these cases count by themselves.
        name = verdict.entry.module + (", any size" if verdict.case.endswith("B") else "")
        modules.setdefault(name, Counter())[verdict.kind] += 1
    lines = ["| module | cases | right | refused | failed | wrong |", "|---|---|---|---|---|---|"]
    total: Counter[str] = sum(modules.values(), Counter())
    for module, counts in (*sorted(modules.items()), ("all", total)):
        kinds = " | ".join(str(counts[kind]) for kind in ("right", "refused", "failed", "wrong"))
        lines.append(f"| {module} | {counts.total()} | {kinds} |")
    lines += ["", "| callable | case | verdict | why |", "|---|---|---|---|"]
    for v in found:
        if v.kind != "right":
            lines.append(f"| {v.entry} | {v.case} | {v.kind} | {v.why.replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--narrow", action="store_true")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    page = table(sweep(options.only, narrow=options.narrow))
    if options.write is not None:
        options.write.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
