"""Write a decoder as a WebAssembly module with its JavaScript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.decoding.network import Network
from smelt.decoding.standalone.c_files import loop_fields
from smelt.decoding.standalone.plans import Part
from smelt.errors import InternalError
from smelt.native.emit.unit import Unit
from smelt.native.emit.weights import Weight, blob
from smelt.native.kernels.register_blocks import WASM_SIMD128, for_machine
from smelt.runtime.c_library import ERROR_SIZE
from smelt.runtime.wasm_compiler import build
from smelt.runtime.wasm_exports import WEIGHTS
from smelt.targets.base import Artifact, Plan
from smelt.targets.c.emit import rendered
from smelt.targets.wasm.emit import VERSIONS
from smelt.targets.wasm.javascript import file_names, loader, package, text_of
from smelt.targets.wasm.module import addresses, import_count, with_data
from smelt.targets.wasm.options import Options
from smelt.targets.wasm.source import HEAD

EXPORTS = ("start", "reset", "feed", "next", "sample", "prompt", WEIGHTS)

GLUE = """#include "model.h"

#define ALIGNED(bytes) __attribute__((aligned(bytes)))
unsigned char weights[WEIGHTS_ROOM] ALIGNED(MODEL_WEIGHTS_ALIGN);
int32_t prompt[MODEL_CONTEXT];
static unsigned char memory[MODEL_MEMORY_BYTES] ALIGNED(MODEL_MEMORY_ALIGN);
static model_decoder *decoder;

int start(void) { return model_init(&decoder, memory, weights); }
int reset(void) { return model_reset(decoder); }
int feed(int count) { return model_feed(decoder, prompt, (size_t)count); }
int next(void)
{
    int32_t token;
    const int error = model_next(decoder, &token);
    return error ? -error : token;
}
int sample(double temperature, int top_k, double top_p, double min_p, double penalty,
    uint32_t low, uint32_t high)
{
    const model_sampling how = { temperature, top_k, top_p, min_p, penalty,
        low | (uint64_t)high << 32 };
    return model_sample(decoder, &how);
}
"""
"""The functions of the module, over the decoder in C."""


def wasm_artifact(
    network: Network, parts: Sequence[Part], context: int, options: Options
) -> Artifact:
    """Return the files of a decoder whose programs are planned.

    Raises UsageError E675 without a compiler for WebAssembly.
    """
    weights: dict[tuple[str, bytes], Weight] = {}
    texts: dict[str, str] = {}
    for part in parts:
        texts |= _program(part, weights)
    data = blob(weights.values())
    title = parts[0].plan.steps.name
    fields = loop_fields(network, parts, context, "model", title, "bin", len(data))
    texts["model.h"] = rendered("decoder/decoder.h.j2", fields).decode()
    texts["decoder.c"] = rendered("decoder/decoder.c.j2", fields).decode()
    glue = GLUE.replace("WEIGHTS_ROOM", str(max(len(data), 1)))
    beside = options.is_beside(len(data))
    names = file_names(options, is_beside=beside)
    files: dict[str, bytes] = {}
    for middle, flags in VERSIONS.items():
        if middle and not options.plain:
            continue
        module = build(glue, EXPORTS, flags, texts)
        if import_count(module):
            raise InternalError(
                "E961",
                "the module would need functions of its host",
                why="the generated code calls functions that wasi-libc takes from the system",
                fix="report this with the model",
            )
        if data and not beside:
            module = with_data(module, addresses(module)[WEIGHTS], data)
        files[f"{options.name}{middle}.wasm"] = module
    if beside:
        files[names["weights"]] = data
    model = {
        "files": names,
        "context": context,
        "vocabulary": network.vocabulary,
        "weights": {"bytes": len(data)} if beside else None,
    }
    files[f"{options.name}.mjs"] = (loader(model) + text_of("decoder.mjs")).encode()
    files[f"{options.name}.d.ts"] = text_of("decoder.d.ts").encode()
    files["package.json"] = package(options.name, list(files)).encode()
    facts = {
        "context": context,
        "memory_bytes": fields["memory_bytes"],
        "weights_bytes": len(data),
    }
    plan: Plan[Any, Any] = Plan(parts[-1].plan.model, options)
    plan.facts |= facts
    return Artifact("wasm", plan.model, files, plan, dict(facts))


def _program(part: Part, weights: dict[tuple[str, bytes], Weight]) -> dict[str, str]:
    """Return source and header of a program, which adds its constants to ``weights``.

    ::

        int model_step_run(const void *const *inputs, void *const *outputs, void *arena,
            const void *data, const ptrdiff_t *sizes)
        {
            unsigned char *const memory = (unsigned char *)arena;
            const ptrdiff_t dim0 = sizes[0];
            DotGeneral_0(...);
            return 0;
        }
    """
    program, name = part.plan.steps, f"model_{part.word}"
    with for_machine(WASM_SIMD128):
        unit = Unit(name, program, part.plan.memory, constants="blob", weights=weights)
    has_sizes = ",\n    const ptrdiff_t *sizes" if program.input_sizes else ""
    head = (
        f"int {name}_run(const void *const *inputs, void *const *outputs, void *arena,\n"
        f"    const void *data{has_sizes})"
    )
    lines = [
        "unsigned char *const memory = (unsigned char *)arena;",
        "const unsigned char *const weights = (const unsigned char *)data;",
        "(void)memory, (void)weights, (void)inputs, (void)outputs;",
    ]
    for number, each in enumerate(program.input_sizes):
        lines += [f"const ptrdiff_t {each.size} = sizes[{number}];", f"(void){each.size};"]
    for each in program.data_dependent_sizes:
        lines += [f"ptrdiff_t {each.size} = -1;", f"(void){each.size};"]
    lines += [f"if ({check}) return {ERROR_SIZE};" for check in unit.checks]
    inner = "".join(f"    {line}\n" for line in (*lines, *unit.calls, "return 0;"))
    functions = (*unit.support.values(), *unit.tests.values(), *unit.functions.values())
    header = f"#include <stddef.h>\n{head};\n"
    source = "\n".join([HEAD, f'#include "{name}.h"', *functions, f"{head}\n{{\n{inner}}}\n"])
    return {f"{name}.c": source, f"{name}.h": header}
