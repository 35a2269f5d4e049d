"""Write models as Core ML packages, read them back, and compare them with ONNX Runtime.

    python -m bench.core_ml FOLDER [--precision fp32,fp16] [--bounds 2..6] [--only bert,vit]

Each open size has the bounds; it is run at the lowest, the default and the greatest size. The size
``total`` is one more, as in decoders with a past. Prints a
line for each model: the largest error relative to the largest element of an output, or the refusal.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir

import smelt
from smelt.errors import SmeltError
from smelt.frontends.coreml.load import read_core_ml
from smelt.ir.symbolic_dims.dims import symbols_of, unnamed_dims
from smelt.runtime.inputs import random_inputs
from smelt.runtime.rounded_half import round_each_half
from smelt.runtime.runner import open_runner
from smelt.targets.coreml.runner import as_package_array

ERRORS = {"fp32": 1e-5, "fp16": 1e-2}


def sizes_of(model: ir.Model) -> list[str]:
    """Return the names of all open sizes of inputs."""
    unnamed = unnamed_dims(model.graph.inputs)
    found: dict[str, None] = {}
    for value in model.graph.inputs:
        for axis, dim in enumerate(value.shape or ()):
            if not isinstance(dim, int):
                given = unnamed.get((value, axis))
                found |= dict.fromkeys([given] if given else symbols_of(dim))
    return list(found)


def largest_error(source: str | Path | ir.Model, precision: str, low: int, high: int) -> float:
    """Return the largest error of the package of ``source`` at three sizes, as ``error_of`` counts.

    Open sizes have the bounds ``low`` and ``high``; these and their mean are run. ``precision`` is
    the option of the target, fp32 or fp16.
    """
    model = smelt.load(source) if not isinstance(source, ir.Model) else source
    names = sizes_of(model)
    middle = (low + high) // 2
    dims = {name: (low + (name == "total"), high + (name == "total")) for name in names}
    default = ";".join(f"{name}={middle + (name == 'total')}" for name in names)
    options = {"precision": precision, "default": default}
    artifact = smelt.compile(source, target="coreml", dims=dims, **options)
    with tempfile.TemporaryDirectory() as folder:
        artifact.save(Path(folder) / "m.mlpackage")
        package = open_runner(round_each_half(read_core_ml(Path(folder) / "m.mlpackage")))
    run = open_runner(source)
    sizes = dict.fromkeys((low, middle, high)) if names else {low: None}
    errors = [
        error_of(package(*map(as_package_array, inputs)), run(*inputs))
        for size in sizes
        for inputs in [
            random_inputs(model, {name: size + (name == "total") for name in names}, seed=size)
        ]
    ]
    return float(np.max(errors))  # NaN if one of them is, unlike max


def error_of(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Return the largest error, relative to the largest finite element of an output.

    The error is 0 where both have NaN, or the same infinity. It is infinite for arrays of another
    shape, and where an infinity stands against another number. It is NaN where only one has NaN.
    """
    worst = 0.0
    for have, want in zip(found, map(as_package_array, expected), strict=True):
        if have.shape != want.shape:
            return float("inf")
        wide = want.astype(np.float64)
        same = (have == wide) | (np.isnan(have) & np.isnan(wide))
        scale = np.abs(wide[np.isfinite(wide)]).max(initial=0.0) or 1.0
        error = np.where(same, 0.0, np.abs(have.astype(np.float64) - wide))
        worst = max(worst, float(error.max(initial=0.0) / scale))
        if np.isnan(error).any():
            return float("nan")
    return worst


def line_of(path: Path, precisions: Sequence[str], low: int, high: int) -> Mapping[str, str]:
    """Return the error of a model or its refusal, in words, by precision."""
    said = {}
    for precision in precisions:
        try:
            error = largest_error(path, precision, low, high)
        except SmeltError as refusal:
            said[precision] = f"{refusal.code} {refusal.what}: {refusal.why}"
        else:
            said[precision] = f"{error:.1e}" + ("" if error <= ERRORS[precision] else "  <- large")
    return said


def main() -> None:
    """Print a line for each model of a folder, and how many are within their error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--precision", default="fp32,fp16")
    parser.add_argument("--bounds", default="2..6")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    low, high = map(int, arguments.bounds.split(".."))
    precisions, only = arguments.precision.split(","), arguments.only.split(",")
    counts = dict.fromkeys(precisions, 0)
    paths = sorted(arguments.folder.glob("*.onnx"))
    for path in paths:
        if any(word in path.stem for word in only):
            said = line_of(path, precisions, low, high)
            for precision, words in said.items():
                counts[precision] += words[0].isdigit() and "large" not in words
            print(f"{path.stem}: " + "; ".join(f"{k} {v}" for k, v in said.items()), flush=True)
    print(f"of {len(paths)} within their error: {counts}")


if __name__ == "__main__":
    main()
