"""How exactly ONNX Runtime computes each special function, over the whole range of its type.

    python -m bench.runtime_accuracy [--page]

One node is run alone, on one thread, on seeded inputs, and is held against the function in
80-bit arithmetic (the error function: in 30 digits). ``--page`` writes the tables into
``docs/runtime-accuracy.md``. It needs a machine whose ``long double`` has 64 bits of mantissa.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

from bench.runtime_functions import ELEMENTWISE, OVER_ROWS, SPREADS, Function, Wide, rows
from smelt.ir import text
from smelt.ir.floats import float_info, spacing

PAGE = Path(__file__).parents[1] / "docs" / "runtime-accuracy.md"
TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16}
SEED = 0


@dataclass(frozen=True)
class Errors:
    """The errors of one operator on one type.

    ``relative`` and ``absolute`` are the largest error in units in the last place of the true
    result, where that is a normal number, and of the largest operand or 1; ``at`` is where the
    first stands. ``lost`` says where a normal result came as 0, an infinity or NaN.
    """

    relative: float
    absolute: float
    at: str
    lost: str


def grid(dtype: type) -> np.ndarray:
    """Numbers of both signs from the subnormal ones to the largest, and densely near 0."""
    rng = np.random.default_rng(SEED)
    info = float_info(np.dtype(dtype))
    ends = np.log(float(info.smallest_subnormal)), np.log(float(info.max))
    sizes = np.exp(rng.uniform(*ends, 6000))
    near = rng.uniform(0, 130, 20000) * rng.choice([1, 1, 0.01], 20000)
    far = np.exp(rng.uniform(np.log(100), np.log(1e5), 2000))
    positive = np.concatenate([sizes, near, far, [0.0, 1.0, 1e4]])
    positive = np.minimum(positive, float(info.max))
    return np.sort(np.concatenate([-positive, positive])).astype(dtype)


def outcome(function: Function, dtype: type, arrays: list[np.ndarray]) -> np.ndarray:
    """What ONNX Runtime gives for ``function`` of ``arrays``."""
    kind = {value: key for key, value in TYPES.items()}[dtype]
    shapes = [f"{kind}{'[N]' if array.ndim == 1 else '[M,N]'}" for array in arrays]
    inputs = ", ".join(f"{shape} {name}" for shape, name in zip(shapes, "xz", strict=False))
    graph = f"g ({inputs}) => ({kind} y) {function.constants} {{ {function.node} }}"
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    proto = ir.to_proto(text.parse(graph, function.opset))
    session = ort.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return np.asarray(session.run(None, dict(zip(names, arrays, strict=True)))[0])


def errors(got: np.ndarray, true: Wide, arrays: list[np.ndarray]) -> Errors:
    """How ``got`` differs from ``true``, elements of the same places."""
    dtype = got.dtype
    info = float_info(dtype)
    flat = [np.broadcast_to(array, got.shape).ravel() for array in arrays]
    got, true = got.ravel(), true.ravel()
    with np.errstate(all="ignore"):
        normal = (np.abs(true) >= info.smallest_normal) & (np.abs(true) <= info.max)
        error = np.abs(got.astype(np.longdouble) - true)
        relative = np.where(normal, error / spacing(true.astype(np.float64), dtype), 0)
        size = np.maximum(1.0, np.max([np.abs(each) for each in flat], axis=0))
        size = np.maximum(size.astype(np.float64), np.abs(true).astype(np.float64))
        absolute = np.where(normal, error / spacing(size, dtype), 0)
    gone = normal & ((got == 0) | ~np.isfinite(got))
    relative[gone], absolute[gone & ~np.isfinite(got)] = 0, np.inf
    worst = int(np.argmax(relative))
    at = ", ".join(f"{each[worst]:.4g}" for each in flat)
    return Errors(float(relative[worst]), float(absolute.max()), at, _lost(gone, got, flat))


def _lost(gone: np.ndarray, got: np.ndarray, flat: list[np.ndarray]) -> str:
    """The smallest and the largest operand whose normal result is lost, and what came instead."""
    if not gone.any():
        return ""
    came = sorted({"NaN" if np.isnan(g) else f"{g:g}" for g in np.abs(got[gone])})
    low, high = flat[0][gone].min(), flat[0][gone].max()
    return f"{' or '.join(came)} for {low:.4g} to {high:.4g}"


def measured(function: Function, arrays: list[np.ndarray]) -> Errors | None:
    """The errors of ``function`` on ``arrays``; None if their type has no kernel."""
    try:
        got = outcome(function, arrays[0].dtype.type, arrays)
    except Exception as error:
        if not re.search("NOT_IMPLEMENTED|is invalid", str(error)):
            raise
        return None
    with np.errstate(all="ignore"):
        true = function.true(*[array.astype(np.longdouble) for array in arrays])
    if arrays[0].ndim > 1:
        arrays = [np.abs(arrays[0]).max(-1, keepdims=True)]
    return errors(got, true, arrays)


def element_lines() -> Iterator[list[str]]:
    """A line for each elementwise operator and type that has a kernel."""
    for function in ELEMENTWISE:
        for kind, dtype in TYPES.items():
            x = grid(dtype)
            both = [np.abs(x), np.random.default_rng(1).permutation(x)]
            found = measured(function, [x] if function.operands == 1 else both)
            if found is not None:
                figures = [f"{found.relative:.2g}", found.at, f"{found.absolute:.2g}", found.lost]
                yield [f"`{function.name}`", kind, *figures]


def row_lines() -> Iterator[list[str]]:
    """A line for each operator over rows and type: its absolute error, or what it loses."""
    for name, function in OVER_ROWS.items():
        for kind, dtype in TYPES.items():
            cells = []
            for spread in SPREADS.values():
                arrays = rows(function, spread, dtype)
                found = measured(function, arrays) if np.isfinite(arrays[0]).all() else None
                beyond = found is not None and np.isinf(found.absolute)
                figure = "" if found is None else f"{found.absolute:.2g}"
                cells.append(found.lost.split(" for ")[0] if found and beyond else figure)
            yield [f"`{name}`", kind, *cells]


def table(heads: list[str], lines: Iterator[list[str]]) -> str:
    """Lines as a table of Markdown."""
    rule = ["---"] * len(heads)
    return "\n".join("| " + " | ".join(line) + " |" for line in [heads, rule, *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true", help="write the tables into the page")
    heads = ["operator", "type", "relative", "at", "absolute", "lost"]
    single = table(heads, element_lines())
    rows_table = table(["operator", "type", *SPREADS], row_lines())
    print(single, rows_table, sep="\n\n")
    if parser.parse_args().page:
        page = PAGE.read_text(encoding="utf-8")
        for name, lines in (("elements", single), ("rows", rows_table)):
            mark = f"<!-- {name} -->"
            page = re.sub(rf"{mark}.*?{mark}", f"{mark}\n\n{lines}\n\n{mark}", page, flags=re.S)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
