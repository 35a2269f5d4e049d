"""Depthwise convolutions: one padded plane at a time, in blocks of rows or as one long row.

The padded plane is split by stride into phases, so neighboring output pixels read contiguous
elements. Output rows that are shorter than a vector are computed as one row at the pitch of the
plane; results in the gaps are dropped.
"""

from __future__ import annotations

from dataclasses import replace

from smelt.native.kernels.convolution import depthwise_rows
from smelt.native.kernels.convolution.algorithm import Algorithm
from smelt.native.kernels.convolution.depthwise_layout import Layout, layout_of
from smelt.native.kernels.convolution.padded_copy import dense_rows, padded_plane
from smelt.native.kernels.convolution.parts import epilogue_by_filter, is_float, padded_rows
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.epilogue import RELU, Epilogue, plus
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.register_blocks import runtime_blocks
from smelt.native.kernels.vector import MOST_LANES, PRELUDE
from smelt.program.run_sizes import Size, highest, lowest, same, smaller

MOST_POSITIONS = 64
"""The most kernel positions; each is an instruction."""


def supports(instance: Instance, window: Window) -> bool:
    """True if this file's kernels support the instruction: one channel per group, on one plane."""
    positions = window.kernel[1] * window.kernel[2]
    single = channels_of(instance)[0] == 1 and instance.int("group") > 1
    return single and window.flat and is_float(instance) and positions <= MOST_POSITIONS


SMALL, SMALL_OF_FEW_ROWS = 512, 96
"""The largest padded plane, in elements, for kernels with many or few rows, for which the next
plane is padded before this one is multiplied. A vector load of elements just stored in parts stalls
until they are in cache."""


def _is_ahead(window: Window, layout: Layout) -> bool:
    """True if planes are padded one ahead, in two buffers."""
    size = len(layout.phases) * layout.phase
    most = SMALL if depthwise_rows.is_tall(window) else SMALL_OF_FEW_ROWS
    return not isinstance(size, Size) and size <= most


def workspace(instance: Instance, window: Window) -> int:
    """Return the bytes of the padded planes and a band of results."""
    layout = layout_of(window)
    # Kernels that are not tall have a form without blocks of rows, too.
    results = 0 if depthwise_rows.is_tall(window) else layout.results
    if depthwise_rows.supports(window):
        rows = smaller(depthwise_rows.ROWS, window.output[1])
        results = max(results, highest(rows * depthwise_rows.pitch_of(window)))
    planes = highest(len(layout.phases) * layout.phase) * (2 if _is_ahead(window, layout) else 1)
    return 4 * (planes + 2 * MOST_LANES + results)


def emit(cx: KernelContext, window: Window) -> None:
    """Write the planes of the output; each input plane is padded once for all of its filters."""
    layout, body = _named_layout(cx, window), cx.body
    x, w, y, bias = cx.input(0), cx.input(1), cx.output(), cx.optional(2)
    filters, group, positions = channels_of(cx)[1], cx.int("group"), w.size // w.shape[0]
    cx.call("LANES", PRELUDE)
    scratch = cx.scratch(x.type)
    size = window.input[1] * window.input[2]
    plane, ahead = len(layout.phases) * layout.phase, _is_ahead(window, layout) and body.parts == 1
    planes = 2 * plane if ahead else plane
    body.line(f"float *results = {scratch} + {planes + 2 * MOST_LANES};")
    # Vectors read beyond the plane. Integers left there are subnormal floats, ten times as slow to
    # multiply.
    clear = f"memset(results - {2 * MOST_LANES}, 0, {8 * MOST_LANES});"
    runtime_sized = isinstance(layout.phase, Size)
    if not runtime_sized:
        body.line(clear)
    with body.loops(("n", "g"), (x.shape[0], group), 1):
        body.line(f"const float *image = {x.name} + (n * {group} + g) * {size};")
        if ahead:
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
            body.line(f"const float *k = {w.name} + o * {positions};")
            body.line(f"float *out = {y.name} + (n * {group * filters} + o) * {window.pixels};")
            body.line(f"const float start[] = {{ {f'{bias.name}[o]' if bias else 0} }};")
            rows = depthwise_rows.supports(window)
            if depthwise_rows.is_tall(window):
                _emit_rows(cx, window, layout, scratch)
                return
            if rows:  # They are long C, and pay only with vectors.
                body.line("#if LANES > 1")
                _emit_rows(cx, window, layout, scratch)
                body.line("#else")
            with body.loop("h", window.output[1], step=str(layout.band)):
                _emit_band(cx, window, layout, scratch)
            if rows:
                body.line("#endif")


def _named_layout(cx: KernelContext, window: Window) -> Layout:
    """Return the layout with C variables for run-time sizes, which the innermost loop reads."""
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


def _emit_rows(cx: KernelContext, window: Window, layout: Layout, scratch: str) -> None:
    """Write output rows in blocks of nearly equal height.

    Whole rows are stored as they are computed; an epilogue other than a Relu reads them from
    ``results``.
    """
    body, wide, epilogue = cx.body, window.output[2], epilogue_by_filter(cx)
    relu = epilogue == Epilogue(RELU)
    direct = depthwise_rows.is_wide(window) and (relu or epilogue == Epilogue())
    for part in runtime_blocks(window.output[1], depthwise_rows.ROWS):
        if direct:
            with body.block(""):
                body.line(f"const float *from = {scratch} + {part.first} * {layout.pitch};")
                body.line(f"float *to = out + {part.first} * {wide};")
                shape = (part.count, part.length, wide)
                depthwise_rows.emit(cx, window, layout, ("to", shape), relu=relu)
            continue
        end, pitch = part.first + part.length * part.count, depthwise_rows.pitch_of(window)
        with body.loop("h", end, part.first, part.length):
            body.line(f"const ptrdiff_t rows = {part.length};")
            body.line(f"const float *from = {scratch} + h * {layout.pitch};")
            depthwise_rows.emit(cx, window, layout, ("results", (1, part.length, pitch)))
            _emit_store(cx, window, pitch, epilogue)


def _emit_band(cx: KernelContext, window: Window, layout: Layout, scratch: str) -> None:
    """Write a band of output rows as one row at the pitch of the plane."""
    body, height, epilogue = cx.body, window.output[1], epilogue_by_filter(cx)
    relu = epilogue == Epilogue(RELU)
    left = f"{height} - h"
    rows = f"{left} < {layout.band} ? {left} : {layout.band}"
    body.line(f"const ptrdiff_t rows = {height if same(layout.band, height) else rows};")
    body.line(f"const float *from = {scratch} + h * {layout.pitch};")
    length = Size.named("rows", 1, highest(layout.band)) * layout.pitch
    depthwise_rows.emit_flat(cx, window, layout, length, relu=relu)
    _emit_store(cx, window, layout.pitch, Epilogue() if relu else epilogue)


def _emit_store(cx: KernelContext, window: Window, pitch: int, epilogue: Epilogue) -> None:
    """Write the epilogue of ``rows`` rows of results, ``pitch`` apart, and their stores from row
    ``h`` on.
    """
    body, wide = cx.body, window.output[2]
    if epilogue != Epilogue() and not any(one.column for one in epilogue.side_operands):
        with body.loop("p", f"rows * {pitch}"):
            _emit_epilogue(
                cx, epilogue.at(f"(o - g * {channels_of(cx)[1]})", "0"), "results[p]", "p"
            )
        epilogue = Epilogue()
    if epilogue == Epilogue():
        if isinstance(wide, Size):
            arguments = (
                f"results, {pitch}, out + h * {wide}, rows, {wide}, {window.pixels} - h * {wide}"
            )
            body.line(f"{dense_rows(cx)}({arguments});")
            return
        with body.loop("r", "rows"):
            body.line(f"memcpy(out + (h + r) * {wide}, results + r * {pitch}, {4 * wide});")
        return
    epilogue = epilogue.at(f"(o - g * {channels_of(cx)[1]})", f"(h + r) * {wide}")
    with body.loop("r", "rows"), body.loop("q", wide):
        sum_ = f"results[r * {pitch} + q]"
        _emit_epilogue(cx, epilogue, sum_, "q", f"out[(h + r) * {wide} + q]")


def _emit_epilogue(
    cx: KernelContext, epilogue: Epilogue, sum_: str, column: str, target: str = ""
) -> None:
    """Write the epilogue of one sum and its store at ``target``, by default in place.

    Side operands are read at ``column``.
    """
    body = cx.body
    body.line(f"const float v0 = {sum_};")
    names = ["v0"]
    for i, one in enumerate(epilogue.side_operands, 1):
        body.line(f"const float v{i} = *({plus(one.pointer, column, one.column)});")
        names.append(f"v{i}")
    for line in epilogue.lines:
        body.line(line.format(*names))
    body.line(f"{target or sum_} = {epilogue.text.format(*names)};")


ALGORITHM = Algorithm(emit, workspace, supports, epilogue=True)
