"""Depthwise convolutions: one padded plane at a time, in blocks of rows or as one long row.

The padded plane is split by stride into phases, so neighboring output pixels read contiguous
elements. There are two ways to compute an output plane:

- a block: up to 7 output rows at once, with their sums in registers;
- a band: as many output rows as have about 2,048 results, computed as one long row at the pitch of
  the plane. Results in the gaps between rows are dropped. This suits rows shorter than a vector.

A kernel is tall if it has 5 to 8 rows and no strides; it is always computed in blocks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from smelt.loops.lower import lower
from smelt.loops.printer import print_nest
from smelt.native.kernels.convolution import depthwise_rows
from smelt.native.kernels.convolution.algorithm import Algorithm
from smelt.native.kernels.convolution.depthwise_layout import Layout, layout_of
from smelt.native.kernels.convolution.depthwise_rows import plane_as_row, rows_of
from smelt.native.kernels.convolution.padded_copy import dense_rows, padded_plane
from smelt.native.kernels.convolution.parts import epilogue_by_filter, is_float, padded_rows
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.epilogue import Epilogue, emit_stores
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.register_blocks import runtime_blocks
from smelt.native.kernels.vector import MOST_LANES, PRELUDE
from smelt.program.run_sizes import Dim, Size, highest, lowest, same, smaller

MOST_POSITIONS = 64
"""The most kernel positions; each is an instruction."""


def supports(instance: Instance, window: Window) -> bool:
    """True if this file's kernels support the instruction: one channel per group, on one plane."""
    positions = window.kernel[1] * window.kernel[2]
    single = channels_of(instance)[0] == 1 and instance.int("group") > 1
    return single and window.flat and is_float(instance) and positions <= MOST_POSITIONS


SMALL, SMALL_OF_FEW_ROWS = 512, 96
"""The largest padded plane, in elements, of which the next one is padded before this one is
multiplied: ``SMALL`` for tall kernels, ``SMALL_OF_FEW_ROWS`` for others. A vector load of elements
just stored in parts stalls until they are in cache."""


def _pads_next_plane(window: Window, layout: Layout) -> bool:
    """True if the next plane is padded, in a second buffer, before this one is multiplied."""
    size = len(layout.phases) * layout.phase
    most = SMALL if depthwise_rows.is_tall(window) else SMALL_OF_FEW_ROWS
    return not isinstance(size, Size) and size <= most


def workspace(instance: Instance, window: Window) -> int:
    """Return the bytes of scratch space: one or two padded planes, the elements that vectors read
    beyond them, and the buffered results of a band or of a block, whichever has more.
    """
    layout = layout_of(window)
    # Only tall kernels never compute bands: the C of other kernels has bands for CPUs without
    # vectors, see ``_emit_filter``.
    results = 0 if depthwise_rows.is_tall(window) else layout.results
    if depthwise_rows.supports(window):
        rows = smaller(depthwise_rows.ROWS, window.output[1])
        results = max(results, highest(rows * depthwise_rows.pitch_of(window)))
    planes = highest(len(layout.phases) * layout.phase) * (
        2 if _pads_next_plane(window, layout) else 1
    )
    return 4 * (planes + 2 * MOST_LANES + results)


def emit(cx: KernelContext, window: Window) -> None:
    """Write the planes of the output; each input plane is padded once for all of its filters.

    Small planes are padded one ahead, alternately in two buffers; see ``SMALL``.
    """
    layout, body = _named_layout(cx, window), cx.body
    source, weights, output, bias = cx.input(0), cx.input(1), cx.output(), cx.optional(2)
    filters = channels_of(cx)[1]
    group = cx.int("group")
    positions = weights.size // weights.shape[0]
    cx.call("LANES", PRELUDE)
    scratch = cx.scratch(source.type)
    size = window.input[1] * window.input[2]
    plane = len(layout.phases) * layout.phase
    pads_next = _pads_next_plane(window, layout) and body.parts == 1
    planes = 2 * plane if pads_next else plane
    body.line(f"float *results = {scratch} + {planes + 2 * MOST_LANES};")
    # Vectors read beyond the plane. Integers left there are subnormal floats, ten times as slow to
    # multiply.
    clear = f"memset(results - {2 * MOST_LANES}, 0, {8 * MOST_LANES});"
    runtime_sized = isinstance(layout.phase, Size)
    if not runtime_sized:
        body.line(clear)
    with body.loops(("n", "g"), (source.shape[0], group), 1):
        body.line(f"const float *image = {source.name} + (n * {group} + g) * {size};")
        if pads_next:
            with body.block("if (g == 0)"):
                _emit_padding(cx, window, layout, scratch)
            with body.block(f"if (g + 1 < {group})"):
                next_ = f"{scratch} + (g + 1) % 2 * {plane}"
                _emit_padding(cx, window, layout, next_, f"image + {size}")
            scratch = f"{scratch} + g % 2 * {plane}"
        else:
            _emit_padding(cx, window, layout, scratch)
        if runtime_sized:
            body.line(clear)
        with body.loop("o", f"(g + 1) * {filters}", f"g * {filters}"):
            body.line(f"const float *k = {weights.name} + o * {positions};")
            body.line(
                f"float *out = {output.name} + (n * {group * filters} + o) * {window.pixels};"
            )
            body.line(f"const float start[] = {{ {f'{bias.name}[o]' if bias else 0} }};")
            _emit_filter(cx, window, layout, scratch)


def _emit_filter(cx: KernelContext, window: Window, layout: Layout, scratch: str) -> None:
    """Write the output plane of filter ``o``: in blocks of rows, in bands, or both under ``#if``.

    Blocks of rows are long C. Unless the kernel is tall, they are faster only with vectors.
    """
    body, has_rows = cx.body, depthwise_rows.supports(window)
    if depthwise_rows.is_tall(window):
        _emit_rows(cx, window, layout, scratch)
        return
    if has_rows:
        body.line("#if LANES > 1")
        _emit_rows(cx, window, layout, scratch)
        body.line("#else")
    with body.loop("h", window.output[1], step=str(layout.band)):
        _emit_band(cx, window, layout, scratch)
    if has_rows:
        body.line("#endif")


def _named_layout(cx: KernelContext, window: Window) -> Layout:
    """Return the layout with run-time sizes replaced by C variables, and declare the variables.

    The innermost loop reads these sizes; the variables keep it from computing them. ``deep`` are
    the rows of a phase (``rows`` is another variable in the C of a band), ``pitch`` the elements
    between rows, ``band`` the output rows of a band, which tall kernels do not have.

    ```
    const ptrdiff_t deep = dim2 + 2;
    const ptrdiff_t pitch = dim3 + 2;
    ```
    """
    layout = layout_of(window)
    if not isinstance(layout.phase, Size):
        return layout
    variables = {"rows": "deep", "pitch": "pitch", "band": "band"}
    if depthwise_rows.is_tall(window):
        del variables["band"]
    named = {}
    for name, variable in variables.items():
        size = getattr(layout, name)
        cx.body.line(f"const ptrdiff_t {variable} = {size};")
        named[name] = Size.named(variable, lowest(size), highest(size))
    return replace(layout, **named)


def _emit_padding(
    cx: KernelContext, window: Window, layout: Layout, scratch: str, image: str = "image"
) -> None:
    """Write the padded copy of a plane, phase by phase."""
    _, height, width = window.input
    for number, phase in enumerate(layout.phases):
        stride = (window.strides[1], window.strides[2])
        top, left = (at - begin for at, begin in zip(phase, window.begin[1:], strict=True))
        to = f"{scratch} + {number * layout.phase}"
        if not isinstance(layout.phase, Size):
            copy = padded_rows(cx, window, layout.pitch, stride=stride, phase=phase)
            cx.body.line(f"{copy}({image}, {to}, {top}, {layout.rows});")
            continue
        arguments = f"{image}, {to}, {height}, {width}, {top}, {left}, {layout.rows}"
        arguments += f", {stride[0]}, {layout.pitch}, {stride[1]}"
        cx.body.line(f"{padded_plane(cx)}({arguments});")


def _epilogues(cx: KernelContext) -> tuple[Epilogue, Epilogue]:
    """Return the epilogue applied to sums in registers, and the one applied to stored sums.

    One of both is empty. The epilogue waits for stored sums if an operand varies along the plane:
    the last vector of a row overlaps the one before, and the result may overwrite an operand.
    """
    epilogue = epilogue_by_filter(cx).at(f"(o - g * {channels_of(cx)[1]})", "0")
    varies = any(not same(operand.column, 0) for operand in epilogue.side_operands)
    return (Epilogue(), epilogue) if varies else (epilogue, Epilogue())


def _emit_rows(cx: KernelContext, window: Window, layout: Layout, scratch: str) -> None:
    """Write output rows in blocks of nearly equal height.

    Wide rows are stored in the output at once, unless the epilogue waits for stored sums. Other
    rows are stored in ``results`` and copied.
    """
    body, wide, type_ = cx.body, window.output[2], cx.type(0)
    epilogue, stores = _epilogues(cx)
    for part in runtime_blocks(window.output[1], depthwise_rows.ROWS):
        if depthwise_rows.is_wide(window) and stores == Epilogue():
            with body.block(""):
                body.line(f"const float *from = {scratch} + {part.first} * {layout.pitch};")
                body.line(f"float *to = out + {part.first} * {wide};")
                shape = (part.count, part.length, wide)
                print_nest(lower(*rows_of(type_, window, layout, ("to", shape), epilogue)), body)
            continue
        end, pitch = part.first + part.length * part.count, depthwise_rows.pitch_of(window)
        with body.loop("h", end, part.first, part.length):
            body.line(f"const float *from = {scratch} + h * {layout.pitch};")
            to = "results", (1, part.length, pitch)
            print_nest(lower(*rows_of(type_, window, layout, to, epilogue)), body)
            _emit_store(cx, window, part.length, pitch, stores)


def _emit_band(cx: KernelContext, window: Window, layout: Layout, scratch: str) -> None:
    """Write a band of output rows as one row at the pitch of the plane."""
    body, height = cx.body, window.output[1]
    epilogue, stores = _epilogues(cx)
    left = f"{height} - h"
    rows = f"{left} < {layout.band} ? {left} : {layout.band}"
    body.line(f"const ptrdiff_t rows = {height if same(layout.band, height) else rows};")
    body.line(f"const float *from = {scratch} + h * {layout.pitch};")
    count = Size.named("rows", 1, highest(layout.band))
    row = plane_as_row(cx.type(0), window, layout, count * layout.pitch, epilogue)
    print_nest(lower(*row), body)
    _emit_store(cx, window, count, layout.pitch, stores)


def _emit_store(
    cx: KernelContext, window: Window, rows: Dim, pitch: Dim, epilogue: Epilogue
) -> None:
    """Write ``rows`` rows of results, ``pitch`` apart, from row ``h`` of the plane on."""
    body, wide = cx.body, window.output[2]
    if epilogue != Epilogue():
        emit_stores(
            body,
            epilogue.of_rows(wide).at("h", "0"),
            (rows, wide),
            ("results", pitch),
            (f"out + h * {wide}", wide),
        )
    elif isinstance(wide, Size):
        room = f"{window.pixels} - h * {wide}"
        body.line(f"{dense_rows(cx)}(results, {pitch}, out + h * {wide}, {rows}, {wide}, {room});")
    else:
        with body.loop("r", cast(int, rows)):
            body.line(f"memcpy(out + (h + r) * {wide}, results + r * {pitch}, {4 * wide});")


ALGORITHM = Algorithm(emit, workspace, supports, epilogue=True)
