"""The C text of a module: buffers at fixed addresses, a run, and the shapes of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smelt.native.emit.unit import Unit
from smelt.native.emit.weights import BLOB_ALIGNMENT
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan
from smelt.runtime.c_library import ERROR_SIZE
from smelt.runtime.wasm_exports import DIMS, LENGTHS, RUN, SHAPES, SIZES, WEIGHTS
from smelt.targets.wasm.images import Image

HEAD = """#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
"""


def source_of(
    program: Program, memory: MemoryPlan, unit: Unit, weights_bytes: int, images: Sequence[Image]
) -> str:
    """Return the C of ``program``; its buffers are exported, and reserved but not filled.

    ::

        unsigned char weights[640] __attribute__((aligned(64)));
        unsigned char input0[32] __attribute__((aligned(64)));
        unsigned char output0[16] __attribute__((aligned(64)));
        static unsigned char memory[128] __attribute__((aligned(64)));
        int run(void)
        {
            const void *const inputs[] = { input0 };
            void *const outputs[] = { output0 };
            DotGeneral_0((const float *)inputs[0], (float *)outputs[0]);
            return 0;
        }
    """
    functions = (*unit.support.values(), *unit.tests.values(), *unit.functions.values())
    buffers = {WEIGHTS: weights_bytes}
    for word, slots in (("input", program.inputs), ("output", program.outputs)):
        buffers |= {f"{word}{i}": program.slots[slot].most_bytes for i, slot in enumerate(slots)}
    buffers |= {image.buffer: image.buffer_bytes for image in images}
    texts = [
        HEAD,
        *(_buffer(name, size) for name, size in buffers.items()),
        "static " + _buffer("memory", memory.arena_bytes),
        *_size_arrays(program),
        *functions,
        _run(program, unit),
        *(image.text() for image in images),
    ]
    if has_open_sizes(program):
        dims = _dims(program, program.inputs, 0)
        texts.append(_function(SHAPES, [*_sizes(program), *dims, "return 0;"]))
    return "\n".join(texts)


def has_open_sizes(program: Program) -> bool:
    """True if dims of inputs or outputs vary by run, so the caller passes or reads sizes."""
    return bool(program.input_sizes or program.returned_sizes)


def _buffer(name: str, size: int) -> str:
    """Return a buffer of at least one byte, for C has no empty arrays."""
    return f"unsigned char {name}[{max(size, 1)}] __attribute__((aligned({BLOB_ALIGNMENT})));"


def _size_arrays(program: Program) -> Iterator[str]:
    """Yield the arrays of the sizes that a run receives and returns, and of all dims."""
    if has_open_sizes(program):
        slots = (*program.inputs, *program.outputs)
        dims = sum(len(program.slots[slot].shape) for slot in slots)
        yield f"int32_t {SIZES}[{max(len(program.input_sizes), 1)}];"
        yield f"int32_t {LENGTHS}[{max(len(program.returned_sizes), 1)}];"
        yield f"int32_t {DIMS}[{max(dims, 1)}];"


def _sizes(program: Program) -> list[str]:
    """Return the lines that read the sizes of a run: ``const ptrdiff_t dim0 = sizes[0];``."""
    lines = []
    for number, each in enumerate(program.input_sizes):
        lines += [f"const ptrdiff_t {each.size} = {SIZES}[{number}];", f"(void){each.size};"]
    return lines


def _dims(program: Program, slots: Sequence[int], first: int) -> list[str]:
    """Return the lines that write the dims of ``slots`` from place ``first`` on."""
    dims = [dim for slot in slots for dim in program.slots[slot].sizes]
    return [f"{DIMS}[{first + i}] = (int32_t)({dim});" for i, dim in enumerate(dims)]


def _run(program: Program, unit: Unit) -> str:
    """Return the function of a run: 0, or the number of an error."""
    lines = [
        _pointers("const void *const inputs", "input", len(program.inputs)),
        _pointers("void *const outputs", "output", len(program.outputs)),
        *(f"(void){name};" for name in ("inputs", "outputs", "memory", "weights")),
        *_sizes(program),
    ]
    for each in program.data_dependent_sizes:
        lines += [f"ptrdiff_t {each.size} = -1;", f"(void){each.size};"]
    lines += [f"if ({check}) return {ERROR_SIZE};" for check in unit.checks]
    lines += unit.calls
    for number, each in enumerate(program.returned_sizes):
        lines.append(f"{LENGTHS}[{number}] = (int32_t)({each.size});")
    if has_open_sizes(program):
        first = sum(len(program.slots[slot].shape) for slot in program.inputs)
        lines += _dims(program, program.outputs, first)
    return _function(RUN, [*lines, "return 0;"])


def _pointers(declared: str, word: str, count: int) -> str:
    """Return an array of pointers to buffers: ``void *const outputs[] = { output0 };``."""
    names = ", ".join(f"{word}{i}" for i in range(count)) or "0"
    return f"{declared}[] = {{ {names} }};"


def _function(name: str, lines: Sequence[str]) -> str:
    """Return the exported function ``name`` without parameters."""
    inner = "".join(f"    {line}\n" for line in lines)
    return f"int {name}(void);\nint {name}(void)\n{{\n{inner}}}\n"
