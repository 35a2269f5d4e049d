"""What the native engine emits for small models: tables to read before they are committed.

::

    PYTHONPATH=src:tests python -m emitted                   print the facts that differ
    PYTHONPATH=src:tests python -m emitted --write           write the tables again
    PYTHONPATH=src:tests python -m emitted --add native 'native.test_dot.GRAPHS: name | c'

``emitted.json`` of a room holds its cases. A case names the table of tests that has its graph, the
key in it, and one of ``WAYS``. Tables of both rooms are read by ``test_emitted.py`` of each.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir
from c_library import compile_c, random_inputs, with_values
from sized_library import Sized

from smelt.distribution import VERSION
from smelt.errors import InvalidModel
from smelt.ir import text
from smelt.ir.bounds import note_bounds
from smelt.ir.shapes.declared import declared
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.native.computed import is_computed_with_bound_sizes
from smelt.native.emit.in_process import source_of
from smelt.native.emit.unit import Unit
from smelt.native.rewrite.call_blas import call_blas
from smelt.native.rewrite.call_lapack import call_lapack
from smelt.native.rewrite.choose_skinny_dot import choose_skinny_dot
from smelt.native.rewrite.convolve_packed import convolve_packed
from smelt.native.rewrite.factor_lane_batched import factor_lane_batched
from smelt.native.schedule import planned
from smelt.program.instruction import Program
from smelt.program.lower import lower
from smelt.program.schedule import IN_CACHE
from smelt.program.specialize import bind_declared, specialize
from smelt.targets.host.static_programs import FUSIONS

Facts: TypeAlias = dict[str, str | int | float]

TESTS = Path(__file__).parent
ROOMS = ("native", "program")

OPSETS = (23, 21, 19, 26)
"""A graph is read at the first of them that has its operators in the form that the graph uses."""

BOUNDS = (1, 9)
"""The sizes of symbolic dims whose table gives no bounds."""

CHOICES = (convolve_packed, choose_skinny_dot, factor_lane_batched, call_blas, call_lapack)
"""What the host chooses from on a machine with BLAS and LAPACK."""

_FLOAT = re.compile(r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+(?=[eE][-+\d]))(?:[eE][-+]?\d+)?")
"""A floating-point literal of C, without its suffix."""


def for_c(source: Sized, opset: int, share: float = 1.0, **options: object) -> Facts:
    """Return what target ``c`` emits without passes, in this share of the arena that it needs."""
    artifact = compile_c(_bounded(source, opset), **options)
    if share < 1:
        arena = int(artifact.plan.memory.arena_bytes * share)
        artifact = compile_c(_bounded(source, opset), arena=arena, **options)
    program, memory = artifact.plan.steps, artifact.plan.memory
    arrays = [each.array for each in Unit("model", program, memory).weights.values()]
    code = "\n".join(artifact.files[f"model.{end}"].decode() for end in "hc")
    return facts(program, memory.arena_bytes, arrays, code)


def _bounded(source: Sized, opset: int) -> ir.Model:
    """Return the model of ``source`` with bounds for all symbolic dims of inputs."""
    model = with_values(source.graph, opset, source.values)
    dims = [dim for value in model.graph.inputs for dim in value.shape or ()]
    names = sorted(set[str]().union(*map(symbols_of, dims)))
    note_bounds(model, dict.fromkeys(names, BOUNDS) | dict(source.bounds))
    return model


def for_host(source: Sized, opset: int, parts: int = 1) -> Facts:
    """Return what the host compiles at the largest sizes."""
    model = with_values(source.graph, opset, source.values)
    ShapeInference(model).infer_model()
    program = lower(model, is_computed_with_bound_sizes)
    bind_declared(program, declared(model.graph))
    shapes = [
        tuple(
            dim if isinstance(dim, int) else source.bounds.get(str(dim), BOUNDS)[1]
            for dim in program.slots[slot].shape
        )
        for slot in program.inputs
    ]
    program = planned(specialize(program, shapes), "host", CHOICES, FUSIONS, IN_CACHE)
    emitted = source_of(program, parts)
    return facts(program, emitted.memory_bytes, emitted.weights, emitted.text)


WAYS: Mapping[str, Callable[[Sized, int], Facts]] = {
    "c": for_c,
    "c in shards": partial(for_c, threads=3),
    "c in fixed point": partial(for_c, quantized="fixed"),
    "c for a Cortex-M": partial(for_c, cpu="cortex-m4", profile=True, weights="bin"),
    "c in a small arena": partial(for_c, share=0.6),
    "host": for_host,
    "host in shards": partial(for_host, parts=3),
}
"""Each way to emit a graph; after ``, weights`` all inputs but the first are constants."""

WEIGHTS = ", weights"


def facts(program: Program, arena: int, arrays: Iterable[np.ndarray], code: str) -> Facts:
    """Return what is recorded: kernels in order, sizes, and digests of the weights and the C."""
    arrays = list(arrays)
    code = _FLOAT.sub(lambda found: f"{float(found[0]):.5g}", code.replace(VERSION, ""))
    return {
        "kernels": " ".join(_kernels(program)),
        "arena bytes": arena,
        "weight bytes": sum(array.nbytes for array in arrays),
        "weights": round(sum(map(_moment, arrays)), 4) + 0.0,
        "lines of C": code.count("\n"),
        "digest of C": hashlib.sha256(code.encode()).hexdigest()[:12],
    }


def _kernels(program: Program) -> Iterator[str]:
    """Yield the kernels in order, those of bodies in brackets behind their instruction."""
    for step in program.instructions:
        yield step.op.removeprefix("smelt.native::")
        for body in step.bodies:
            yield f"[{' '.join(_kernels(body.program))}]"


def _moment(array: np.ndarray) -> float:
    """Return a number that depends on the magnitude of the elements and on their order.

    Another CPU's NumPy changes last bits of computed constants, which the rounded number hides.
    """
    flat = np.nan_to_num(np.ravel(array).astype(np.float64), posinf=1e30, neginf=-1e30)
    mass = max(float(np.abs(flat).sum()), 1e-300)
    places = 1 + np.arange(flat.size) * 0.618 % 1
    return float(flat @ places) / mass + math.log(mass)


def emit(case: str) -> Facts:
    """Return the facts of a case by its name."""
    where, _, way = case.rpartition(" | ")
    source = graph_of(where)
    if way.endswith(WEIGHTS):
        source = _with_weights(source)
    return WAYS[way.removesuffix(WEIGHTS)](source, _opset_of(source.graph))


def graph_of(where: str) -> Sized:
    """Return the graph at ``module.TABLE: key``, where ``TABLE`` is a dict or a function."""
    path, _, key = where.partition(": ")
    module, _, name = path.rpartition(".")
    table = getattr(importlib.import_module(module), name)
    found: Any = table(int(key) if key.isdigit() else key) if callable(table) else table[key]
    if isinstance(found, Sized):
        return found
    graph = found if isinstance(found, str) else getattr(found, "graph", None) or found[0]
    return Sized(graph, {}, getattr(found, "values", {}))


def _opset_of(graph: str) -> int:
    """Return the first of ``OPSETS`` at which the graph is valid."""
    for opset in OPSETS:
        try:
            ShapeInference(text.parse(graph, opset)).infer_model()
        except InvalidModel:
            continue
        return opset
    raise ValueError(f"no opset of {OPSETS} reads {graph}")


def _with_weights(source: Sized) -> Sized:
    """Return ``source`` with constants for all inputs of known sizes but the first."""
    model = text.parse(source.graph, _opset_of(source.graph))
    ports = model.graph.inputs
    known = [each for each in ports if all(isinstance(dim, int) for dim in each.shape or ())]
    for each in [each for each in ports if each not in known]:
        ports.remove(each)
    arrays = dict(zip([each.name for each in known], random_inputs(model, seed=1), strict=True))
    first = text.parse(source.graph, _opset_of(source.graph)).graph.inputs[0].name
    arrays.pop(first, None)
    return Sized(source.graph, source.bounds, {**arrays, **source.values})


def table_of(room: str) -> dict[str, Facts]:
    """Return the recorded facts of the cases of a room, by case."""
    file = TESTS / room / "emitted.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}


def write(room: str, table: Mapping[str, Facts]) -> None:
    """Write the table of a room, one line a case."""
    lines = (f"{json.dumps(case)}: {json.dumps(table[case])}" for case in sorted(table))
    (TESTS / room / "emitted.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def differences(case: str, recorded: Facts) -> list[str]:
    """Return the facts of a case that differ from those recorded, as lines."""
    found = emit(case)
    return [
        f"{each}: {recorded[each]} -> {found[each]}"
        for each in found
        if found[each] != recorded[each]
    ]


def main() -> int:
    """Print what differs, or write the tables; the status is 1 if something differs."""
    parser = argparse.ArgumentParser(
        prog="python -m emitted", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the tables again")
    parser.add_argument("--add", nargs=2, metavar=("ROOM", "CASE"), help="add a case to a table")
    given = parser.parse_args()
    if given.add:
        room, case = given.add
        write(room, table_of(room) | {case: emit(case)})
        return 0
    differ = 0
    for room in ROOMS:
        table = table_of(room)
        for case, recorded in table.items():
            found = differences(case, recorded)
            differ += bool(found)
            print("\n    ".join([case, *found])) if found else None
        if given.write:
            write(room, {case: emit(case) for case in table})
    return 0 if given.write else min(differ, 1)


if __name__ == "__main__":
    sys.exit(main())
