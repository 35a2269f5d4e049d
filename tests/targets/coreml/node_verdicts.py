"""What becomes of each node test of ONNX: agrees, wrong, or refused with a code.

A package is written, read back by the Core ML frontend, whose meanings of operators are written
apart from the rows of the target, and run by ONNX Runtime. Operands that decide shapes are made
constants where the model is refused for them, as constant folding does in real models.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from targets.coreml.packages import outside

import smelt
from smelt.errors import SmeltError
from smelt.runtime.runner import open_runner

RTOL, ATOL = 1e-5, 1e-6
FEW_DIGITS = {"test_roialign_aligned_false": 1e-4, "test_roialign_aligned_true": 1e-4}
"""Cases that ONNX Runtime does not run, by the precision in which their expected values are told."""


@cache
def cases() -> dict[str, object]:
    """All node cases by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in load_model_tests(kind="node") if case.data_sets}


def array_of(item: object) -> np.ndarray | None:
    """A tensor of a data set as an array; None for sequences and optionals."""
    if isinstance(item, onnx.TensorProto):
        return numpy_helper.to_array(item)
    return np.asarray(item) if isinstance(item, np.ndarray | np.generic) else None


def baked(model: onnx.ModelProto, arrays: list[np.ndarray], keep: int) -> ir.Model:
    """The model with all inputs but the first ``keep`` as constants."""
    graph = ir.from_proto(model)
    pairs = list(zip(list(graph.graph.inputs), arrays, strict=False))[keep:]
    for value, array in pairs:
        graph.graph.inputs.remove(value)
        value.const_value = ir.Tensor(np.ascontiguousarray(array), name=value.name)
        graph.graph.register_initializer(value)
    return graph


def verdict(case: object, precision: str = "fp32", ios: int = 17) -> str:
    """``agrees``, ``wrong: ...``, or ``refused CODE: ...``."""
    inputs = [array_of(item) for item in case.data_sets[0][0]]
    expected = [array_of(item) for item in case.data_sets[0][1]]
    if any(item is None for item in (*inputs, *expected)):
        return without_tensors(case)
    refusal = ""
    for keep in dict.fromkeys((len(inputs), min(len(inputs), 1))):
        try:
            artifact = smelt.compile(
                baked(case.model, inputs, keep), target="coreml", precision=precision, ios=ios
            )
        except SmeltError as error:
            refusal = refusal or f"refused {error.code}: {error.what}: {error.why}"
            continue
        return compare(artifact, [outside(each) for each in inputs[:keep]], expected, case)
    return refusal


def without_tensors(case: object) -> str:
    """The refusal of a case with sequences or optional values; ``wrong`` if there is none."""
    try:
        smelt.compile(case.model, target="coreml")
    except SmeltError as error:
        return f"refused {error.code}: {error.what}: {error.why}"
    return "wrong: a package for inputs or outputs that are no tensors"


def compare(artifact, inputs, expected, case) -> str:
    """The verdict on what the package computes."""
    import tempfile

    from smelt.frontends.coreml.load import read_core_ml

    with tempfile.TemporaryDirectory() as folder:
        artifact.save(folder + "/m.mlpackage")
        if importlib.util.find_spec("coremltools"):
            from targets.coreml.coremltools_check import problems

            found = problems(Path(folder) / "m.mlpackage")
            if found:
                return f"malformed: {found[:3]}"
        model = read_core_ml(folder + "/m.mlpackage")
        got = open_runner(model)(*inputs)
    for index, (want, have) in enumerate(zip(map(outside, expected), got, strict=True)):
        if want.shape != have.shape:
            return f"wrong: output {index}: {have.shape} for {want.shape}"
        rtol, atol = RTOL, max(ATOL, case.atol, FEW_DIGITS.get(case.name, 0))
        if want.dtype.kind in "fV":
            if want.dtype.itemsize == 2:
                rtol = max(rtol, 2e-3)
            if _close(want, have, rtol, atol):
                continue
            # expected values of some cases have four digits: then ONNX Runtime decides
            exact = _by_runtime(case)
            if (
                exact is None
                or not _close(want, have, case.rtol, atol)
                or not _close(outside(exact[index]), have, rtol, atol)
            ):
                worst = np.nanmax(np.abs(want.astype(np.float64) - have.astype(np.float64)))
                return f"wrong: output {index}: by {worst:.3g}"
        elif not np.array_equal(want, have):
            return f"wrong: output {index}: other integers"
    return "agrees"


def _close(want: np.ndarray, have: np.ndarray, rtol: float, atol: float) -> bool:
    wide = want.astype(np.float64), have.astype(np.float64)
    return bool(np.allclose(*wide, rtol, atol, equal_nan=True))


def _by_runtime(case: object) -> tuple[np.ndarray, ...] | None:
    """What ONNX Runtime computes for a case; None if it cannot."""
    try:
        return tuple(
            open_runner(case.model, "onnxruntime")(
                *(array_of(item) for item in case.data_sets[0][0])
            )
        )
    except SmeltError:
        return None


if __name__ == "__main__":
    words = sys.argv[1:]
    counts: Counter[str] = Counter()
    shard = next((tuple(map(int, word.split("/"))) for word in words if "/" in word), (0, 1))
    words = [word for word in words if "/" not in word]
    for number, (name, case) in enumerate(cases().items()):
        if number % shard[1] != shard[0]:
            continue
        if "expanded" in name and "expanded" not in words:
            continue
        if words and not any(word in name for word in words if word != "expanded"):
            continue
        try:
            found = verdict(case)
        except Exception as error:  # noqa: BLE001 - a crash is a verdict
            found = f"crash: {type(error).__name__}: {str(error)[:300]}".replace("\n", " | ")
        counts[found.split()[0].rstrip(":")] += 1
        print(f"{name}\t{found}", flush=True)
    print(dict(counts), file=sys.stderr)
