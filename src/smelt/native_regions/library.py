"""Write the C of a library of custom operators for ONNX Runtime: one operator for each region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smelt.native_regions.c_api import API_VERSION, HEAD, REGISTER, SHARED
from smelt.program.instruction import Program, RunSize, Slot

DOMAIN = "native_regions"
SOURCE = "native_regions.c"


@dataclass(frozen=True)
class Region:
    """One region: the ``name`` of its node and prefix of its C, its program and memory.

    ``threads`` is the number of shards of its costly kernels; with one, there is no function that
    shares them.
    """

    name: str
    program: Program
    arena_bytes: int
    alignment: int
    threads: int

    @property
    def inputs(self) -> list[Slot]:
        """Return the slots of the inputs in order."""
        return [self.program.slots[slot] for slot in self.program.inputs]

    @property
    def outputs(self) -> list[Slot]:
        """Return the slots of the outputs in order."""
        return [self.program.slots[slot] for slot in self.program.outputs]


def library_source(regions: Sequence[Region]) -> str:
    """Return the C source of the library of ``regions``, which includes their headers.

    ::

        static Status *compute_region0(void *kernel, Context *context) {...}
        static const int types_region0[] = { 1, 1 };
        Status *RegisterCustomOps(void *session_options, const ApiBase *base) {...}
    """
    shared = SHARED if any(region.threads > 1 for region in regions) else ""
    headers = "".join(f'#include "{region.name}.h"\n' for region in regions)
    functions = "\n".join(_compute(region) for region in regions)
    return f"{HEAD}{shared}\n{headers}\n{functions}\n{_registration(regions)}"


def _compute(region: Region) -> str:
    """Return the function that runs one region on the tensors of a context.

    ::

        const ptrdiff_t dim0 = shape0[0]; /* B */
        if (shape1[0] != dim0 || shape1[1] != 8)
            return refused(api, "region0", "x", "[B, 8]");
        int64_t result0[] = { dim0, 4 };
        const int error = region0_run(data, results, arena, sizes);
    """
    lines = [
        f"static Status *compute_{region.name}(void *kernel, Context *context)",
        "{",
        "    const Api *api = ((Kernel *)kernel)->api;",
        "    Status *status = NULL;",
        f"    const void *data[{len(region.inputs) or 1}] = {{ NULL }};",
        f"    void *results[{len(region.outputs)}];",
        *_input_lines(region),
        *_size_lines(region),
        *_output_lines(region),
        *_call_lines(region),
        f'    return error ? api->create_status(1, "{region.name}: the sizes of this run are beyond'
        f' those that the region was compiled for") : NULL;',
        "}",
    ]
    return "\n".join(lines) + "\n"


def _input_lines(region: Region) -> list[str]:
    """Return the lines that read address and shape of each input."""
    lines = []
    for i, slot in enumerate(region.inputs):
        rank = len(slot.shape)
        lines += [
            f"    int64_t shape{i}[{rank or 1}] = {{ 0 }};",
            f"    if ((status = read_input(api, context, {i}, {rank}, shape{i}, &data[{i}])))",
            "        return status;",
        ]
    return lines


def _output_lines(region: Region) -> list[str]:
    """Return the lines that create each output with its shape, and get its address."""
    lines = []
    for i, slot in enumerate(region.outputs):
        dims = ", ".join(f"(int64_t)({dim})" for dim in slot.shape) or "0"
        lines += [
            f"    const int64_t result{i}[] = {{ {dims} }};",
            f"    Tensor *output{i} = NULL;",
            f"    if ((status = api->output(context, {i}, result{i}, {len(slot.shape)}, "
            f"&output{i})))",
            "        return status;",
            f"    if ((status = memory_of(api, output{i}, &results[{i}])))",
            "        return status;",
        ]
    return lines


def _size_lines(region: Region) -> list[str]:
    """Return the lines that read the run-time sizes off the inputs, and check all dims."""
    sizes = {str(each.size): each for each in region.program.input_sizes}
    lines, known = [], set()
    for i, slot in enumerate(region.inputs):
        for axis, dim in enumerate(slot.shape):
            if str(dim) in sizes and str(dim) not in known:
                known.add(str(dim))
                lines.append(f"    const ptrdiff_t {dim} = (ptrdiff_t)shape{i}[{axis}];")
    for i, slot in enumerate(region.inputs):
        tests = [f"shape{i}[{axis}] != {dim}" for axis, dim in enumerate(slot.shape)]
        for dim in slot.shape:
            if str(dim) in sizes:
                size = sizes[str(dim)].size
                tests += [f"{dim} < {size.low}", f"{dim} > {size.high}"]
        if tests:
            needed = ", ".join(_bounds(dim, sizes) for dim in slot.shape)
            lines += [
                f"    if ({' || '.join(tests)})",
                f'        return refused(api, "{region.name}", "{i}", "[{needed}]");',
            ]
    if sizes:
        lines.append(f"    const ptrdiff_t sizes[] = {{ {', '.join(sizes)} }};")
    return lines


def _bounds(dim: object, sizes: Mapping[str, RunSize]) -> str:
    """Return a dim of the interface for a message: a number, or ``least..most``."""
    known = sizes.get(str(dim))
    return f"{known.size.low}..{known.size.high}" if known is not None else str(dim)


def _call_lines(region: Region) -> list[str]:
    """Return the lines that run the region in an arena, on the threads of the session."""
    arguments = "data, results, arena"
    arguments += ", sizes" if region.program.input_sizes else ""
    lines = []
    call = f"{region.name}_run({arguments})"
    if region.threads > 1:
        lines.append("    Pool pool = { api, context };")
        call = f"{region.name}_run_parallel({arguments}, parallel_for, &pool)"
    return [
        *lines,
        "    void *block = NULL;",
        f"    unsigned char *arena = take_arena(kernel, {region.arena_bytes}, {region.alignment}, "
        "&block);",
        "    if (arena == NULL)",
        f'        return api->create_status(1, "{region.name}: out of memory");',
        f"    const int error = {call};",
        "    return_arena(kernel, block);",
    ]


def _registration(regions: Sequence[Region]) -> str:
    """Return the operators and the function by which ONNX Runtime registers them.

    ::

        static const Operator operators[] = { { .version = 17, .own_name = "region0", ... } };
        Status *RegisterCustomOps(void *session_options, const ApiBase *base)
    """
    lines = []
    for region in regions:
        types = [str(int(slot.dtype)) for slot in (*region.inputs, *region.outputs)]
        lines.append(f"static const int types_{region.name}[] = {{ {', '.join(types)} }};")
    lines += ["", "static const Operator operators[] = {"]
    for region in regions:
        fields = {
            "version": API_VERSION,
            **{each: each for each in ("create", "destroy", "name", "provider")},
            **{each: each for each in ("inputs", "outputs", "input_type", "output_type")},
            **dict.fromkeys(("input_presence", "output_presence", "input_memory"), "zero"),
            **dict.fromkeys(("fewest_inputs", "fewest_outputs"), "one"),
            **dict.fromkeys(("first_version", "last_version"), "one"),
            "compute": f"compute_{region.name}",
            "own_name": f'"{region.name}"',
            "own_types": f"types_{region.name}",
            "own_inputs": len(region.inputs),
            "own_outputs": len(region.outputs),
        }
        lines.append(
            "    {" + ", ".join(f".{key} = {value}" for key, value in fields.items()) + "},"
        )
    return "\n".join([*lines, "};", REGISTER.format(domain=DOMAIN, version=API_VERSION)])
