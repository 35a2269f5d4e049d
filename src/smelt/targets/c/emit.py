"""The emit phase: write the files of a self-contained C99 library and build the artifact."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from smelt.distribution import VERSION
from smelt.errors import not_installed
from smelt.native.emit.names import comment
from smelt.native.emit.unit import Unit
from smelt.native.emit.weights import BLOB_ALIGNMENT, blob
from smelt.native.interface_file import bounds_of, to_json
from smelt.native.kernels.register_blocks import for_machine
from smelt.native.kernels.vector import WHOLE_VECTORS, WHOLE_VECTORS_END
from smelt.native.sharing import PARALLEL_FOR, task, task_value
from smelt.native.work import kernel_report
from smelt.program.resolve_sizes import with_largest_sizes
from smelt.runtime.c_library import ERROR_SINGULAR
from smelt.targets.base import Artifact
from smelt.targets.c import board, report_file, session_files
from smelt.targets.c.checks import aligned_types, pointer_checks, size_checks, weight_checks
from smelt.targets.c.contract import INTERFACE_VERSION, SCHEMA, ports, sizes_of
from smelt.targets.c.cpus import CPUS
from smelt.targets.c.example import check_example
from smelt.targets.c.options import Options
from smelt.targets.c.phases import CPlan
from smelt.targets.c.project import project_fields, project_files
from smelt.targets.c.report_file import clock_file
from smelt.targets.c.versions import VERSIONS
from smelt.targets.runner import Runner

if TYPE_CHECKING:
    import jinja2


BLOBS = {"incbin": "_weights.c.bin", "bin": "_weights.bin"}
"""Form of the weights to the end of the blob's file name."""


def emit(plan: CPlan) -> Artifact:
    """Write ``<name>.h``, ``<name>.c``, weight files and the interface as JSON into an Artifact.

    ``load`` builds the files with a C compiler and calls the library in this process.
    """
    options: Options = plan.options
    program, memory = plan.steps, plan.memory
    check_example(options, program)
    form = options.form(sum(array.nbytes for array in program.constants.values()))
    in_blob = form in BLOBS
    with for_machine(options.machine):
        unit = Unit(
            options.name,
            program,
            memory,
            constants="blob" if in_blob else "objects",
            parts=options.threads,
        )
    weights = list(unit.weights.values())
    plan.facts["weights_bytes"] = sum(weight.array.nbytes for weight in weights)
    data = blob(weights) if in_blob else b""
    fields = library_fields(plan, unit, form, len(data))
    templates = {
        f"{options.name}.h": "header.h.j2",
        f"{options.name}.c": "source.c.j2",
        f"{options.name}_weights.h": "weights.h.j2",
    }
    if form != "bin":
        templates[f"{options.name}_weights.c"] = "weights.c.j2"
    project = project_files(options.name, options.project)
    templates |= project
    files = {name: rendered(template, fields) for name, template in templates.items()}
    if in_blob:
        files[f"{options.name}{BLOBS[form]}"] = data
    built = {name: text for name, text in files.items() if name not in project}
    if options.project == "session":
        files |= _library(files, options)
        built |= {name: files[name] for name in (session_files.library_name(options.name),)}
    interface = to_json(SCHEMA, options.name, plan.model, program, built)
    files[f"{options.name}.json"] = interface
    kernels = kernel_report(with_largest_sizes(program))
    plan.facts["macs"] = sum(kernel["macs"] for kernel in kernels)
    named = {step: function for step, (_, function) in unit.called.items()}
    board_facts = board.describe(plan, kernels, named, files)
    files[report_file.FILE] = report_file.to_json(options.name, memory, plan.facts, kernels, named)
    plan.facts |= board_facts
    report = {"memory": memory.to_json(), "kernels": kernels, **plan.facts}
    return Artifact("c", plan.model, files, plan, report, _loader(options, plan, files))


def _library(files: Mapping[str, bytes], options: Options) -> dict[str, bytes]:
    """Return more files of the project ``session``, by name: the shared library, and with several
    threads the C code of its thread pool.
    """
    more = {f"{options.name}_pool.c": session_files.pool_file(options.name)}
    more = more if options.threads > 1 else {}
    library = session_files.built_library({**files, **more}, options.name)
    return {**more, session_files.library_name(options.name): library}


def library_fields(plan: CPlan, unit: Unit, form: str, blob_bytes: int) -> dict[str, object]:
    """Return the values of the templates' variables, by name."""
    options: Options = plan.options
    program, memory = plan.steps, plan.memory
    functions = [*unit.support.values(), *unit.functions.values(), *unit.part_functions.values()]
    return {
        "name": options.name,
        "upper": options.name.upper(),
        "title": comment(program.name),
        "version": VERSION,
        "interface_version": INTERFACE_VERSION,
        "sizes": sizes_of(program.input_sizes),
        "lengths": sizes_of(program.returned_sizes),
        "found": [str(each.size) for each in program.data_dependent_sizes],
        "inputs": ports(program, program.inputs),
        "outputs": ports(program, program.outputs),
        "arena_bytes": max(memory.arena_bytes, memory.alignment),
        "alignment": memory.alignment,
        "weights": list(unit.weights.values()),
        "form": form,
        "weights_header": f"{options.name}_weights.h",
        "in_blob": form in BLOBS,
        "blob_bytes": blob_bytes,
        "blob_alignment": BLOB_ALIGNMENT,
        "p2align": BLOB_ALIGNMENT.bit_length() - 1,
        "functions": functions,
        "versions": VERSIONS,
        "whole_vectors": WHOLE_VECTORS,
        "whole_vectors_end": WHOLE_VECTORS_END,
        "dispatched": CPUS[options.cpu].is_chosen_at_run_time,
        "cpu": options.cpu,
        "lanes": CPUS[options.cpu].lanes,
        "names": defined(functions),
        "macros": macros(functions),
        "aligned": aligned_types(program),
        "checks": [
            *pointer_checks(options.name, program, memory),
            *size_checks(program),
            *(weight_checks() if form == "bin" else ()),
            *({"condition": check, "error": "SIZE"} for check in unit.checks),
        ],
        "tests": list(unit.tests.values()),
        **_run_fields(unit, options),
        **project_fields(options.name, options.project, options.cpu),
        "most_rank": session_files.MOST_RANK,
        "session": session_files.session_fields(program, options)
        if options.project == "session"
        else {},
    }


def _run_fields(unit: Unit, options: Options) -> dict[str, object]:
    """Return the template variables of the function that runs the model."""
    has_task = bool(unit.part_functions)
    return {
        "checks_matrices": ERROR_SINGULAR in unit.fails,
        "threads": options.threads,
        "parallel_for": PARALLEL_FOR.format(options.name),
        "task": task(options.name, options.threads, unit.extra_parameters) if has_task else "",
        "task_value": task_value(options.name, unit.extra_parameters),
        "calls": _calls(unit, options),
        "profile": options.profile,
        "step_count": len(unit.program.instructions),
        "timed": options.profile and bool(unit.called),
    }


def _calls(unit: Unit, options: Options) -> list[str]:
    """Return the C lines of a run; with option ``profile`` the clock times each call.

    ```
    begun = model_clock();
    Softmax_1((float *)outputs[0]); /* 1: Softmax Softmax_0 */
    model_ticks[1] += model_clock() - begun;
    ```
    """
    if not options.profile:
        return unit.calls
    clock = f"{options.name}_clock()"
    lines = [[line] for line in unit.calls]
    for step, (line_number, _) in unit.called.items():
        count = f"{options.name}_ticks[{step}] += {clock} - begun;"
        lines[line_number] = [f"begun = {clock};", *lines[line_number], count]
    return [line for each in lines for line in each]


_DEFINED = re.compile(
    r"^static (?:inline )?[^;={(]*?(\w+) ?(?:\(|\[)"
    r"|^typedef (?:[^;{]*\{[^}]*\} |[^;]*?)(\w+)(?: __attribute__[^;]*)?;",
    re.M,
)
_MACRO = re.compile(r"^ *#define (\w+)", re.M)


def defined(texts: Sequence[str]) -> list[str]:
    """Return the functions, tables and types that ``texts`` define at file scope, each once."""
    names = (match[1] or match[2] for text in texts for match in _DEFINED.finditer(text))
    return list(dict.fromkeys(names))


def macros(texts: Sequence[str]) -> list[str]:
    """Return the macros that ``texts`` define, each once."""
    return list(dict.fromkeys(match[1] for text in texts for match in _MACRO.finditer(text)))


def rendered(template: str, fields: dict[str, object]) -> bytes:
    """Return ``template`` filled with ``fields``, as bytes."""
    return environment().get_template(template).render(fields).encode("ascii")


@cache
def environment() -> jinja2.Environment:
    """Return the jinja2 environment of the templates; raises UsageError E631 without jinja2."""
    try:
        import jinja2
    except ImportError as error:
        raise not_installed("jinja2", "c", "the target 'c'") from error
    loader = jinja2.PackageLoader("smelt.targets.c")
    return jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def _loader(options: Options, plan: CPlan, files: dict[str, bytes]) -> Callable[[], Runner]:
    """Return a function that builds the library from ``files`` and loads it into this process.

    Files of projects and reports are not compiled.
    """
    not_compiled = {
        *project_files(options.name, options.project),
        report_file.FILE,
        f"{options.name}_pool.c",
    }
    not_compiled.add(session_files.library_name(options.name))
    arena_bytes, alignment = max(plan.memory.arena_bytes, 1), plan.memory.alignment

    def load() -> Runner:
        """Build and load the library."""
        from smelt.runtime.c_library import load_library
        from smelt.runtime.interface import interface_of

        interface = interface_of(plan.model)
        sources = {name: data for name, data in files.items() if name not in not_compiled}
        if options.profile:
            sources[f"{options.name}_clock.c"] = clock_file(options.name)
        return load_library(
            sources,
            options.name,
            interface,
            arena_bytes=arena_bytes,
            alignment=alignment,
            weights=files.get(f"{options.name}{BLOBS['bin']}"),
            sizes=bounds_of(plan.steps.input_sizes),
            lengths=bounds_of(plan.steps.returned_sizes),
        )

    return load
