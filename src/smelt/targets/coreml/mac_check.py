"""A script and data with which a Mac runs the package, and compares it with ONNX Runtime.

The script ends in a line for each compute unit and run::

    CPU_AND_NE, run 0 (B=1): y differs by 4.1e-04 of its largest element
"""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from smelt.ir.bounds import bounds_of
from smelt.ir.constants import tensor_of
from smelt.runtime.inputs import random_inputs
from smelt.runtime.runner import open_runner
from smelt.targets.coreml.interface import Sizes
from smelt.targets.coreml.options import Options
from smelt.targets.coreml.runner import as_package_array

SCRIPT = '''"""Run {name}.mlpackage on this Mac, and compare it with results of ONNX Runtime.

    pip install coremltools numpy
    python check_on_mac.py
"""

from pathlib import Path

import coremltools as ct
import numpy as np

HERE = Path(__file__).parent
RUNS = {runs!r}
INPUTS, OUTPUTS = {inputs!r}, {outputs!r}
TOLERANCE = {tolerance!r}
"""The largest error, relative to the largest element of an output, that the precision explains."""

data = np.load(HERE / "check_on_mac.npz")
failed = False
for unit in ("CPU_ONLY", "CPU_AND_GPU", "CPU_AND_NE", "ALL"):
    model = ct.models.MLModel(
        str(HERE / "{name}.mlpackage"), compute_units=getattr(ct.ComputeUnit, unit)
    )
    for number, sizes in enumerate(RUNS):
        found = model.predict({{each: data[f"{{number}}/in/{{each}}"] for each in INPUTS}})
        for each in OUTPUTS:
            expected = data[f"{{number}}/out/{{each}}"].astype(np.float64)
            error = np.abs(found[each].astype(np.float64) - expected).max()
            error /= np.abs(expected).max() + 1e-30
            failed |= not error <= TOLERANCE
            mark = "" if error <= TOLERANCE else "  <- above the tolerance"
            run = f"{{unit}}, run {{number}} ({{sizes}})"
            print(f"{{run}}: {{each}} differs by {{error:.1e}} of its largest element{{mark}}")
raise SystemExit(int(failed))
'''


def check_files(model: ir.Model, names: Mapping[str, str], options: Options) -> dict[str, bytes]:
    """Return the script and its data: seeded inputs, and outputs of ONNX Runtime in float32.

    The runs are at the lowest, the default and the greatest size of each dim. ``names`` maps ONNX
    names to those of the package.
    """
    sizes = Sizes.of(bounds_of(model.graph), options)
    run = open_runner(model)
    inputs = [value for value in model.graph.inputs if tensor_of(value) is None]
    arrays: dict[str, np.ndarray] = {}
    runs: list[str] = []
    for bound in _corners(sizes):
        number = len(runs)
        runs.append(", ".join(f"{name}={size}" for name, size in bound.items()))
        given = random_inputs(model, bound, seed=number)
        results = run(*given)
        for group, values, data in (("in", inputs, given), ("out", model.graph.outputs, results)):
            for value, array in zip(values, data, strict=True):
                arrays[f"{number}/{group}/{names[value.name or '']}"] = as_package_array(array)
    text = SCRIPT.format(
        name=options.name,
        runs=runs,
        inputs=[names[value.name or ""] for value in inputs],
        outputs=[names[value.name or ""] for value in model.graph.outputs],
        tolerance=2e-2 if options.precision == "fp16" else 1e-4,
    )
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return {"check_on_mac.py": text.encode(), "check_on_mac.npz": stream.getvalue()}


def _corners(sizes: Sizes) -> list[dict[str, int]]:
    """Return the sizes of three runs: all dims at their lowest, default and greatest size.

    Equal runs are returned once.
    """
    runs = [
        {name: sizes.listed.get(name, ends)[0] for name, ends in sizes.bounds.items()},
        dict(sizes.defaults),
        {name: sizes.listed.get(name, ends)[-1] for name, ends in sizes.bounds.items()},
    ]
    return [each for number, each in enumerate(runs) if each not in runs[:number]]
