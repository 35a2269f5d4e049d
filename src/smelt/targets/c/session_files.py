"""The project ``session``: a C interface with names, shapes and errors, as a shared library.

The header ``smelt_session.h`` is the same for all models. The library holds the code for each level
of x86, so a machine that runs it needs no compiler.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from smelt.native.emit.names import comment, string_literal
from smelt.program.instruction import Program, Slot
from smelt.program.run_sizes import highest
from smelt.runtime.c_library import PORTABLE_FLAGS, build
from smelt.runtime.jit import pool
from smelt.targets.c.options import Options, refused

MOST_RANK = 16
"""The most dims of a tensor of a session."""

BITS_OF_BYTE = 8


def library_name(name: str) -> str:
    """Return the file name of the shared library of the model ``name``."""
    return f"lib{name}.so"


def session_fields(program: Program, options: Options) -> Mapping[str, Any]:
    """Return the template variables of the C file of sessions.

    ``sizes`` says from which dim of which input each open size is read; ``checks`` has the other
    dims of inputs that depend on sizes, ``measured`` the dims of outputs that a run computes.
    Raises UsageError E660 if an open size is no dim of an input, for weights in a file, and for a
    profile.
    """
    inputs = [program.slots[slot] for slot in program.inputs]
    outputs = [program.slots[slot] for slot in program.outputs]
    if options.weights == "bin":
        raise refused(
            "project='session' and weights='bin'",
            "a session has its weights in its library",
            "leave out --option weights=bin",
        )
    if options.profile:
        raise refused(
            "project='session' and profile=True",
            "nobody defines the clock of a session",
            "leave out one of the two",
        )
    if any(len(slot.shape) > MOST_RANK for slot in (*inputs, *outputs)):
        raise refused("project='session'", f"a tensor has more than {MOST_RANK} dims")
    places = {str(dim): (i, axis) for i, slot in enumerate(inputs) for axis, dim in _dims(slot)}
    sizes = []
    for each in program.input_sizes:
        if str(each.size) not in places:
            raise refused(
                "project='session'",
                f"no input has the size {each.name} as one of its dims",
                f"fix the size: --dim {each.name}=1",
            )
        number, axis = places[str(each.size)]
        about = {"variable": str(each.size), "name": comment(each.name)}
        sizes.append({**about, "input": number, "axis": axis})
    read = {(size["input"], size["axis"]) for size in sizes}
    names = {
        str(each.size): each.name for each in (*program.input_sizes, *program.data_dependent_sizes)
    }
    decided = [str(each.size) for each in program.returned_sizes]
    return {
        "inputs": [_port(slot, names) for slot in inputs],
        "outputs": [_port(slot, names) for slot in outputs],
        "sizes": sizes,
        "checks": [
            {"input": i, "axis": axis, "dim": dim}
            for i, slot in enumerate(inputs)
            for axis, dim in _dims(slot)
            if (i, axis) not in read
        ],
        "measured": [
            {"number": i, "axis": axis, "dim": dim}
            for i, slot in enumerate(outputs)
            for axis, dim in _dims(slot)
            if any(variable in str(dim) for variable in decided)
        ],
    }


def _dims(slot: Slot) -> list[tuple[int, object]]:
    """Return the open dims of ``slot``, each with its axis."""
    return [(axis, dim) for axis, dim in enumerate(slot.shape) if not _is_number(dim)]


def _is_number(dim: object) -> bool:
    """True for a dim that is the same in all runs."""
    return str(dim).lstrip("-").isdigit()


def _port(slot: Slot, names: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the C initializers that describe a tensor of the interface."""
    open_dims = dict(_dims(slot))
    shape = [-1 if axis in open_dims else dim for axis, dim in enumerate(slot.shape)]
    least = [getattr(dim, "low", dim) for dim in slot.shape]
    expressions = [f"(int64_t)({dim})" for dim in slot.shape]
    labels = [
        string_literal(names.get(str(dim), str(dim))) if axis in open_dims else "NULL"
        for axis, dim in enumerate(slot.shape)
    ]
    count = " * ".join(f"(size_t)({dim})" for dim in slot.shape) or "(size_t)1"
    bits = slot.dtype.bitwidth
    whole = bits % BITS_OF_BYTE == 0
    size = f"{count} * {bits // BITS_OF_BYTE}" if whole else f"({count} * {bits} + 7) / 8"
    return {
        "name": string_literal(slot.name),
        "type": int(slot.dtype),
        "rank": len(slot.shape),
        "shape": _list(shape),
        "least": _list(least),
        "most": _list([highest(dim) for dim in slot.sizes]),
        "dims": ", ".join(labels) or "NULL",
        "expressions": ", ".join(expressions) or "0",
        "bytes": size,
    }


def _list(items: Sequence[object]) -> str:
    """Return the elements of a C initializer, which has at least one."""
    return ", ".join(map(str, items)) or "0"


def pool_file(name: str) -> bytes:
    """Return the C code of the thread pool, whose entry function is ``NAME_pool``."""
    text = Path(pool.__file__).with_name("pool.c").read_bytes()
    return f"#define smelt_parallel_for {name}_pool\n".encode() + text


def built_library(files: Mapping[str, bytes], name: str) -> bytes:
    """Return the bytes of the shared library of ``files``; raises as ``c_library.build`` does."""
    with tempfile.TemporaryDirectory(prefix="smelt-session-") as folder:
        path = build(files, Path(folder), (*PORTABLE_FLAGS, "-pthread"), f"lib{name}")
        return path.read_bytes()
