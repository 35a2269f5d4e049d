"""``smelt tune --target ort``: time every form of every choice, and write the table as it grows."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from smelt.ir.files import write_atomically
from smelt.runtime.inputs import random_inputs
from smelt.runtime.latency import interleaved_timings
from smelt.runtime.onnxruntime import version
from smelt.runtime.serialize import serialize
from smelt.runtime.session import SessionAdvice, open_session
from smelt.targets.ort.choices import CHOICES, Choice
from smelt.targets.ort.costs import SCHEMA, read_document

ROUNDS = (60, 1000)
"""The least and most rounds of one cell; the minimum of so many runs excludes other work."""

SECONDS = 0.4
"""Seconds of one cell, unless the least number of rounds takes longer."""


def tune(
    path: Path,
    *,
    threads: int = 1,
    seconds: float = float("inf"),
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Write the costs of this machine to ``path``, and return the document.

    The file is written after each cell. Cells that it holds for the same runtime, machine and
    number of threads are not measured again, so that a stopped run can continue. Stops after
    ``seconds``, with ``complete`` false in the document.
    """
    started = time.perf_counter()
    document = _document_to_continue(path, threads)
    all_cells = [(choice, cell) for choice in CHOICES.values() for cell in choice.cells()]
    done = {(name, _key(c["sizes"])) for name, cells in document["choices"].items() for c in cells}
    remaining_cells = [each for each in all_cells if (each[0].name, _key(each[1])) not in done]
    for number, (choice, cell) in enumerate(remaining_cells):
        if time.perf_counter() - started > seconds:
            break
        say(f"{choice.name} {cell}: {number + 1} of {len(remaining_cells)}")
        seconds_of = measure_cell(choice, cell, threads)
        document["choices"].setdefault(choice.name, []).append(
            {"sizes": cell, "seconds": seconds_of}
        )
        document["complete"] = number + 1 == len(remaining_cells)
        write_atomically(path, _text(document).encode())
    return document


def measure_cell(choice: Choice, cell: dict[str, int], threads: int) -> dict[str, float]:
    """Return the seconds of each form at ``cell``, timed interleaved; unsupported forms are left
    out.

    With one thread, processor time is measured, so that other work does not count.
    """
    runs: dict[str, Callable[[], object]] = {}
    for form in choice.forms:
        model = choice.model(form, cell)
        feeds = dict(
            zip((v.name for v in model.graph.inputs), random_inputs(model, {}), strict=True)
        )
        try:
            session = open_session(
                serialize(model).proto.SerializeToString(),
                SessionAdvice(threads=threads, spinning_after_run=False),
            )
        except Exception as error:
            if "NOT_IMPLEMENTED" in str(error) or "No Op registered" in str(error):
                continue  # an older runtime has no kernel for this form
            raise
        runs[form] = partial(session.run, None, feeds)
    clock = time.process_time if threads == 1 else time.perf_counter
    if not runs:
        return {}
    once = sum(timing.minimum for timing in interleaved_timings(list(runs.values()), rounds=1))
    rounds = min(max(round(SECONDS / once), ROUNDS[0]), ROUNDS[1])
    timings = interleaved_timings(list(runs.values()), rounds=rounds, clock=clock)
    return {form: timing.minimum for form, timing in zip(runs, timings, strict=True)}


def _document_to_continue(path: Path, threads: int) -> dict[str, Any]:
    """Return the document at ``path`` if it is of this machine, else an empty one.

    Raises UsageError E662 for a file that is no table.
    """
    conditions = {
        "schema": SCHEMA,
        "runtime": version(),
        "machine": _machine(),
        "threads": threads,
    }
    if path.exists():
        document = read_document(path, "-o FILE that is not there yet, or a table to go on with")
        if {name: document.get(name) for name in conditions} == conditions:
            return document
    return {**conditions, "complete": False, "choices": {}}


def _machine() -> dict[str, str]:
    """Return the architecture and the name of the processor, as far as the system reports them."""
    name = platform.processor()
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        lines = listed.read_text(encoding="utf-8", errors="replace").splitlines()
        named = [line.partition(":")[2] for line in lines if line.startswith("model name")]
        name = named[0].strip() if named else name
    return {"architecture": platform.machine(), "processor": name}


def _key(sizes: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """Return the sizes as a hashable key, the same for any order of names."""
    return tuple(sorted(sizes.items()))


def _text(document: dict[str, Any]) -> str:
    """Return the document as JSON with one line for each cell."""
    head = {name: value for name, value in document.items() if name != "choices"}
    groups = []
    for name, cells in document["choices"].items():
        rows = ",\n".join(
            f"   {json.dumps({**cell, 'seconds': _rounded_seconds(cell)})}" for cell in cells
        )
        groups.append(f"  {json.dumps(name)}: [\n{rows}\n  ]")
    start = json.dumps(head, indent=1).removesuffix("\n}")
    return start + ',\n "choices": {\n' + ",\n".join(groups) + "\n }\n}\n"


def _rounded_seconds(cell: dict[str, Any]) -> dict[str, float]:
    """Return the seconds rounded to four digits."""
    return {form: float(f"{seconds:.4g}") for form, seconds in cell["seconds"].items()}
