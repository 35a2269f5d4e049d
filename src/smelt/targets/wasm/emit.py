"""The emit phase: build the modules and write the folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from smelt.errors import InternalError
from smelt.native.emit.unit import Unit
from smelt.native.emit.weights import blob
from smelt.native.interface_file import bounds_of, to_json
from smelt.native.kernels.register_blocks import WASM_SIMD128, for_machine
from smelt.native.work import kernel_report
from smelt.program.resolve_sizes import with_largest_sizes
from smelt.runtime.interface import interface_of
from smelt.runtime.wasm_compiler import SIMD, build
from smelt.runtime.wasm_exports import WEIGHTS, exports
from smelt.targets.base import Artifact
from smelt.targets.runner import Runner
from smelt.targets.wasm.images import images_of
from smelt.targets.wasm.javascript import javascript_files
from smelt.targets.wasm.module import addresses, import_count, with_data
from smelt.targets.wasm.options import Options
from smelt.targets.wasm.phases import WasmPlan
from smelt.targets.wasm.saved import SCHEMA, runner_of
from smelt.targets.wasm.source import has_open_sizes, source_of

VERSIONS = {"": SIMD, ".plain": ()}
"""The modules of a folder: the text between name and ``.wasm`` to the flags of the compiler."""


def emit(plan: WasmPlan) -> Artifact:
    """Build the modules, and write them with their JavaScript into an Artifact.

    Raises UsageError E675 without a compiler for WebAssembly.
    """
    options: Options = plan.options
    program, memory, name = plan.steps, plan.memory, options.name
    with for_machine(WASM_SIMD128):
        unit = Unit("smelt", program, memory, constants="blob")
    data = blob(unit.weights.values())
    images = images_of(options, program)
    text = source_of(program, memory, unit, len(data), images)
    names = exports(
        len(program.inputs), len(program.outputs), has_open_sizes=has_open_sizes(program)
    )
    names += [name for image in images for name in (image.buffer, image.function)]
    files: dict[str, bytes] = {}
    beside = options.is_beside(len(data))
    for middle, flags in VERSIONS.items():
        if middle and not options.plain:
            continue
        module = build(text, names, flags)
        if import_count(module):
            raise InternalError(
                "E961",
                "the module would need functions of its host",
                why="the generated code calls functions that wasi-libc takes from the system",
                fix="report this with the model",
            )
        plan.facts[f"code_bytes{middle.replace('.', '_')}"] = len(module)
        if data and not beside:
            module = with_data(module, addresses(module)[WEIGHTS], data)
        files[f"{name}{middle}.wasm"] = module
    if beside:
        files[f"{name}.weights"] = data
    plan.facts["weights_bytes"] = len(data)
    interface = interface_of(plan.model)
    files |= javascript_files(options, interface, program, images, len(data) if beside else None)
    files[f"{name}.json"] = to_json(SCHEMA, name, plan.model, program, files)
    kernels = kernel_report(with_largest_sizes(program))
    plan.facts["macs"] = sum(kernel["macs"] for kernel in kernels)
    report = {"memory": memory.to_json(), "kernels": kernels, **plan.facts}
    load: Callable[[], Runner] = partial(
        runner_of,
        files,
        name,
        interface,
        bounds_of(program.input_sizes),
        bounds_of(program.returned_sizes),
    )
    return Artifact("wasm", plan.model, files, plan, report, load)
