"""A Program as C for this process: one function that takes weights by pointer and returns a status.

The text contains only sizes and operators of a model, so models of the same structure share a
library.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

import numpy as np

from smelt.native.emit.unit import Unit
from smelt.native.emit.vector_math import VECTOR_MATH
from smelt.native.kernels.blas import binding
from smelt.native.kernels.vector import WHOLE_VECTORS, WHOLE_VECTORS_END
from smelt.native.memory import allocate
from smelt.native.sharing import PARALLEL_FOR, task, task_value
from smelt.program.instruction import Program

PREFIX = "smelt"
LINE = 64
"""The size of a cache line in bytes, which is that of the widest vector."""
FUNCTION = f"{PREFIX}_run"
BIND_THREADS = f"{PREFIX}_take_threads"
HEAD = """#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
"""
_NOTE = re.compile(r" /\*[^*]*\*/$")
"""The comment at the end of a call, with its step and node. It is removed, because models of the
same structure have the same text only without node names."""

SIGNATURE = (
    f"int {FUNCTION}(const void *const *inputs, void *const *outputs, unsigned char *memory,\n"
    "    const void *const *weights)"
)


@dataclass(frozen=True)
class Source:
    """C ``text`` that defines ``FUNCTION``, the ``weights`` and the bytes of memory that it takes.

    The function returns 0, or another number if there is no result. If steps are split into shards,
    the text also defines ``BIND_THREADS``, which receives the function that runs shards in
    parallel.
    """

    text: str
    weights: tuple[np.ndarray, ...]
    memory_bytes: int
    has_parts: bool = False


def source_of(program: Program, parts: int = 1) -> Source:
    """Return the C of ``program``, a result of ``schedule.planned``, with costly steps in ``parts``
    shards.

    Weights that are constants of the program are passed by pointer; packed ones are copied to
    aligned memory. The run-time sizes of a program are one more input, an array of ``ptrdiff_t``.
    """
    memory = allocate(program, parts=parts)
    unit = Unit(PREFIX, program, memory, constants="table", tells_status=True, parts=parts)
    shared = bool(unit.part_functions)
    body = [
        "int ended = 0, *const status = &ended;",
        *_sizes_read(program),
        *(f"(void){name};" for name in ("inputs", "outputs", "memory", "weights")),
        *((task_value(PREFIX, unit.extra_parameters),) if shared else ()),
        *(f"if ({check}) return 1;" for check in unit.checks),
        *(_NOTE.sub("", call) for call in unit.calls),
        "return *status;",
    ]
    run = "\n    ".join([f"{SIGNATURE}\n{{", *body]) + "\n}\n"
    functions = (unit.support, unit.tests, unit.functions)
    texts = [
        HEAD,
        VECTOR_MATH,
        WHOLE_VECTORS,
        *(text for each in functions for text in each.values()),
    ]
    if shared:
        texts += [_threading_text(parts, unit), *unit.part_functions.values()]
    texts += [run, WHOLE_VECTORS_END, binding(unit.support)]
    model_arrays = {id(_owner(array)) for array in program.constants.values()}
    weights = tuple(
        _cache_aligned(unit.weights.pop(key).array, model_arrays) for key in list(unit.weights)
    )
    return Source("\n".join(texts), weights, memory.arena_bytes, shared)


def _sizes_read(program: Program) -> list[str]:
    """Return the lines that read the run-time sizes, which follow the inputs.

    ::

        const ptrdiff_t *const sizes = (const ptrdiff_t *)inputs[2];
        const ptrdiff_t dim0 = sizes[0];
        (void)dim0;
    """
    names = [str(each.size) for each in program.input_sizes]
    if not names:
        return []
    lines = [f"const ptrdiff_t *const sizes = (const ptrdiff_t *)inputs[{len(program.inputs)}];"]
    for number, name in enumerate(names):
        lines += [f"const ptrdiff_t {name} = sizes[{number}];", f"(void){name};"]
    return lines


def _threading_text(parts: int, unit: Unit) -> str:
    """Return the C that keeps the process's parallel-for and runs shards by it."""
    type_ = f"{PREFIX}_parallel_for"
    return "\n".join(
        [
            PARALLEL_FOR.format(PREFIX),
            f"static {type_} parallel_for;\nstatic void *const context = NULL;",
            f"void {BIND_THREADS}({type_} run_shards)\n{{\n    parallel_for = run_shards;\n}}",
            task(PREFIX, parts, unit.extra_parameters),
        ]
    )


def _cache_aligned(array: np.ndarray, model_arrays: Container[int]) -> np.ndarray:
    """Return ``array`` at a cache line's start, so that reading its first vector touches one line.

    Arrays whose ids are in ``model_arrays`` belong to the model and are not copied.
    """
    array = np.require(array, requirements=("C", "A"))
    if id(_owner(array)) in model_arrays or array.ctypes.data % LINE == 0:
        return array
    memory = np.empty(array.nbytes + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    placed = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    placed[...] = array
    return placed


def _owner(array: np.ndarray) -> object:
    """Return the array that owns the memory of ``array``."""
    return array if array.base is None else array.base
