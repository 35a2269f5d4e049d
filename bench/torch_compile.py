"""``torch.compile(backend="smelt")`` beside PyTorch's own backend, on networks at any width.

    python -m bench.torch_compile [--only 'bert*'] [--width 64] [--layers 2] [--rounds 20]

Needs the extra ``torch`` and transformers. Each network of ``bench.architectures`` runs in PyTorch
without a compile, by inductor and by smelt, on one thread. All take turns in one process; the least
CPU time of the rounds counts, as a ratio to inductor. A result that differs from PyTorch's is told
and not timed. "in PyTorch" counts the graphs that smelt could not compile.
"""

from __future__ import annotations

import argparse
import fnmatch
import time
import warnings
from collections.abc import Callable
from statistics import geometric_mean
from typing import Any

from bench.process import in_own_process
from smelt.runtime.latency import interleaved_timings

MODEL_SECONDS = 900.0
TOLERANCE = {"rtol": 1e-3, "atol": 2e-4}


def judge(name: str, size: dict[str, int], rounds: int) -> dict[str, float | str]:
    """Return the time of PyTorch and of smelt as a ratio to inductor's, and seconds to compile."""
    import torch
    from torch.utils._pytree import tree_flatten

    from bench.architectures import ARCHITECTURES
    from bench.architectures.network import Size

    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = ARCHITECTURES[name](Size(**size))
    module, inputs = network.module.eval(), network.inputs
    runs: dict[str, Callable[[], Any]] = {"PyTorch": lambda: module(*inputs)}
    row: dict[str, float | str] = {}
    with torch.no_grad():
        expected = [t for t in tree_flatten(module(*inputs))[0] if isinstance(t, torch.Tensor)]
        for backend in ("inductor", "smelt"):
            torch._dynamo.reset()
            compiled = torch.compile(module, backend=backend, fullgraph=False)
            begin = time.perf_counter()
            try:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always", RuntimeWarning)
                    results = tree_flatten(compiled(*inputs))[0]
            except Exception as error:  # noqa: BLE001 - each backend raises types of its own
                row[backend] = f"fails: {str(error).splitlines()[:2]}"
                continue
            row[f"{backend} compiles, s"] = time.perf_counter() - begin
            left = [str(each.message) for each in told if "smelt cannot" in str(each.message)]
            if left:
                row["in PyTorch"] = f"{len(left)}: {' '.join(left[0].split())[:300]}"
            tensors = [each for each in results if isinstance(each, torch.Tensor)]
            try:
                torch.testing.assert_close(tensors, expected, **TOLERANCE)
            except AssertionError as error:
                row[backend] = f"wrong: {' '.join(str(error).split())[:200]}"
            else:
                runs[backend] = lambda compiled=compiled: compiled(*inputs)
        timings = interleaved_timings(list(runs.values()), rounds=rounds, clock=time.process_time)
    least = {key: timing.minimum for key, timing in zip(runs, timings, strict=True)}
    base = least.get("inductor", least["PyTorch"])
    return row | {key: seconds / base for key, seconds in least.items()}


def main() -> None:
    """Print a line for each network, and the geometric means."""
    from bench.architectures import ARCHITECTURES

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*")
    parser.add_argument("--rounds", type=int, default=20)
    for field, default in (("width", 64), ("layers", 2), ("heads", 4), ("length", 12)):
        parser.add_argument(f"--{field}", type=int, default=default)
    options = parser.parse_args()
    size = {each: getattr(options, each) for each in ("width", "layers", "heads", "length")}
    rows = {}
    for name in ARCHITECTURES:
        if fnmatch.fnmatch(name, options.only):
            row = in_own_process(judge, name, size, options.rounds, timeout=MODEL_SECONDS)
            print(f"{name}: {_shown(row)}", flush=True)
            if isinstance(row, dict):
                rows[name] = row
    for backend in ("PyTorch", "smelt"):
        ratios = [row[backend] for row in rows.values() if isinstance(row.get(backend), float)]
        if ratios:
            print(f"{backend} over inductor: {geometric_mean(ratios):.2f} ({len(ratios)} networks)")


def _shown(row: dict[str, float | str] | str) -> str:
    if isinstance(row, str):
        return row
    return "; ".join(f"{n} {r:.2f}" if isinstance(r, float) else f"{n} {r}" for n, r in row.items())


if __name__ == "__main__":
    main()
