"""The compiled program of an artifact, for callers other than Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from smelt.errors import ErrorList, SmeltError
from smelt.program.specialize import is_static
from smelt.runtime.jit.caller import Entry
from smelt.runtime.jit.library_call import LibraryCall
from smelt.targets.base import Artifact
from smelt.targets.host.options import Options
from smelt.targets.host.phases import HostProgram
from smelt.targets.host.static_programs import compile_program


def native_program(
    artifact: Artifact, shapes: Sequence[tuple[int, ...]]
) -> tuple[LibraryCall, Entry] | str:
    """Return the program of ``artifact`` for inputs of ``shapes``, compiled now; or why there is
    none.

    Complex inputs have one more dim, of size 2.
    """
    steps = artifact.plan.steps if artifact.target == "host" else None
    if not isinstance(steps, HostProgram):
        return f"the target is {artifact.target}, not host"
    if steps.compiled is None:
        return "the engine is numpy" if steps.parts is None else "sizes depend on data"
    found: list[tuple[LibraryCall, ctypes.CDLL]] = []
    options = artifact.plan.options or Options()
    try:
        program = steps.compiled.at(tuple(shapes))
        assert is_static(program)
        compile_program(program, threads=options.threads, keep=lambda *made: found.append(made))
    except (SmeltError, ErrorList, OSError) as error:
        return str(error).partition("\n")[0]
    if not found:
        return "elements of less than a byte are packed around calls"
    call, library = found[0]
    return call, call.entry(library, options.threads)
