"""Convert every public callable, and hold what comes out against JAX.

python -m jax_surface.sweep [--only jax.numpy] [--write docs/jax-coverage.md]
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax_surface.arguments import Arguments, accepted, call
from jax_surface.surface import Entry, entries

import smelt
from smelt.errors import ErrorList, SmeltError
from smelt.runtime.runner import open_runner


@dataclass(frozen=True)
class Verdict:
    """``kind``: right, wrong, refused or failed, which is an error that is none of ours."""

    entry: Entry
    case: str
    kind: str
    why: str = ""


def verdicts(entry: Entry, wide: bool, most: int = 3) -> Iterator[Verdict]:
    """One verdict for each kind of arguments that JAX accepts."""
    with jax.enable_x64(True) if wide else nullcontext():
        for index, arguments in enumerate(accepted(entry, wide, most)):
            case = f"{'x64' if wide else 'x32'} {index}"
            kind, why = _verdict(entry, arguments, wide)
            yield Verdict(entry, case, kind, why)


def _verdict(entry: Entry, arguments: Arguments, wide: bool) -> tuple[str, str]:
    inputs = [arguments.values[i] for i in arguments.arrays]

    def function(*arrays: Any) -> Any:
        values = list(arguments.values)
        for place, array in zip(arguments.arrays, arrays, strict=True):
            values[place] = array
        result = entry.function(*values, **arguments.keywords)
        return jax.tree.map(_parts, result)

    expected = jax.tree.leaves(jax.tree.map(_parts, call(entry, arguments)))
    specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in inputs]
    try:
        model = smelt.trace(function, *specs, x64=wide)
    except ErrorList as errors:
        return "refused", "; ".join(f"{e.code} {e.what}" for e in errors.errors)
    except SmeltError as error:
        return "refused", f"{error.code} {error.what}"
    except Exception as error:  # noqa: BLE001 - the sweep is there to find whatever is raised
        return "failed", f"{type(error).__name__}: {str(error)[:160]}"
    trials = [("", inputs, expected)]
    if _elementwise(entry, inputs, expected):
        edges = [edge_values(array, turn) for turn, array in enumerate(inputs)]
        trials.append(("edges, ", edges, jax.tree.leaves(function(*map(jnp.asarray, edges)))))
    for optimized in (False, True):
        if optimized:
            model = smelt.optimize(model)
        for name, values, wanted in trials:
            problem = _run(model, values, wanted)
            if problem:
                kind = "failed" if problem.startswith("E") else "wrong"
                return kind, f"{name}{'optimized, ' if optimized else ''}{problem}"
    return "right", ""


def _run(model: Any, inputs: list[np.ndarray], expected: list[Any]) -> str:
    """What is wrong with the outputs of ``model``, empty if nothing; an error by its code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actual = list(open_runner(model)(*inputs))
    except SmeltError as error:
        return f"{error.code} {error.what}: {str(error.why)[:160]}"
    for index, (want, got) in enumerate(zip(expected, actual, strict=True)):
        problem = differs(np.asarray(want), np.asarray(got))
        if problem:
            return f"output {index}: {problem}"
    return ""


ELEMENTWISE = ("jax.numpy", "jax.lax", "jax.nn", "jax.scipy.special")
EDGES = {
    "f": [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e30, -1e30, 1e-30, 0.5, -2.5],
    "i": [0, 1, -1, -(2**31), 2**31 - 1, 7],
    "b": [True, False],
}


def _elementwise(entry: Entry, inputs: list[np.ndarray], expected: list[Any]) -> bool:
    """True if the results have the shape of the inputs, so that each element stands for itself."""
    shapes = {array.shape for array in (*inputs, *expected)}
    return entry.module in ELEMENTWISE and len(shapes) == 1 and bool(inputs)


def edge_values(array: np.ndarray, turn: int) -> np.ndarray:
    """NaN, infinities, zeros and extremes in the shape of ``array``, shifted for each operand."""
    values = EDGES.get(array.dtype.kind)
    if values is None:
        return array
    shifted = [values[(i * (2 * turn + 1) + turn) % len(values)] for i in range(array.size)]
    return np.asarray(shifted).astype(array.dtype).reshape(array.shape)


def _parts(leaf: Any) -> Any:
    """Keys as their bits, complex numbers as pairs: what an ONNX interface can carry."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    if jnp.iscomplexobj(leaf):
        return jnp.stack([leaf.real, leaf.imag], -1)
    return leaf


def differs(want: np.ndarray, got: np.ndarray) -> str:
    """What is different, empty if nothing: integers equal, floats within 2e-4 or 1e-8."""
    if want.dtype != got.dtype or want.shape != got.shape:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype.kind not in "fV":
        return "" if np.array_equal(want, got) else f"{want.ravel()[:4]} became {got.ravel()[:4]}"
    loose = want.dtype.itemsize < 8
    a, b = want.astype(np.float64), got.astype(np.float64)
    scale = float(np.max(np.abs(a[np.isfinite(a)]), initial=1e-30))
    rtol = 2e-4 if loose else 1e-8
    close = np.isclose(a, b, rtol=rtol, atol=rtol * min(scale, 1.0), equal_nan=True)
    if close.all():
        return ""
    at = np.argmin(close.ravel())
    return f"{a.ravel()[at]:.7g} became {b.ravel()[at]:.7g} at {int(at)}"


def sweep(only: str = "", wide: tuple[bool, ...] = (False, True)) -> list[Verdict]:
    """Verdicts over the surface, or over the callables whose path starts with ``only``."""
    found: list[Verdict] = []
    for entry in entries():
        if str(entry).startswith(only):
            for each in wide:
                found += verdicts(entry, each)
    return found


def table(found: list[Verdict]) -> str:
    """A Markdown page: a row for each module, then what is not right."""
    modules: dict[str, Counter[str]] = {}
    for verdict in found:
        modules.setdefault(verdict.entry.module, Counter())[verdict.kind] += 1
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
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    page = table(sweep(options.only))
    if options.write is not None:
        options.write.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
