"""Pooling of floats by vectors, in bands of rows: first the rows of a window, then its columns.

Rows are combined directly from the image into an array with padding, one row per output row. For
the columns of a maximum at stride 1, each pass combines windows of at least a third of the size.
They may overlap, because counting an element twice does not change a maximum. A sum adds each
column once. Stride 2 splits vectors into even and odd columns.
"""

from __future__ import annotations

from collections.abc import Iterator

from smelt.native.kernels.convolution.padded_copy import dense_rows
from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.extremes import LARGER
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.pooled_rows import Joining, declare_down
from smelt.native.kernels.vector import MOST_LANES, PRELUDE, SECONDS
from smelt.program.run_sizes import Dim, Size, highest, larger, smaller

WHEN = "LANES >= 8"
"""The preprocessor condition for such vectors, and a stack that holds the array."""

KEPT = 2048
"""The approximate size of the array in elements."""

MOST_SUMMED = 16
"""The most columns of a mean's window; each is an addition."""

ODDS = """#if LANES == 16 && !defined(__clang__)
#define ODDS(v, w) __builtin_shuffle(v, w, __extension__(mask){ \\
    1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31 })
#elif LANES == 16
#define ODDS(v, w) __builtin_shufflevector(v, w, \\
    1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#elif LANES == 8 && !defined(__clang__)
#define ODDS(v, w) __builtin_shuffle(v, w, __extension__(mask){ 1, 3, 5, 7, 9, 11, 13, 15 })
#elif LANES == 8
#define ODDS(v, w) __builtin_shufflevector(v, w, 1, 3, 5, 7, 9, 11, 13, 15)
#endif
"""


def supports(window: Window) -> bool:
    """True if the columns that the windows of a row read fit the array."""
    return highest(pitch_of(window)) <= KEPT


def pitch_of(window: Window) -> int:
    """Return the number of columns that the windows of a row read."""
    reach = (window.kernel[2] - 1) * window.dilations[2] + 1
    return (window.output[2] - 1) * window.strides[2] + reach


def supports_sum(window: Window) -> bool:
    """True if ``supports``, and the window has few columns, each of which is an addition."""
    return supports(window) and window.kernel[2] <= MOST_SUMMED


def emit(cx: KernelContext, window: Window, joining: Joining, result: str) -> None:
    """Write the pooling of plane ``c`` in bands of output rows.

    ``result`` is the C of an output element, computed from the combined window ``a`` at depth
    ``o``, row ``h + r`` and column ``q``. If ``joining.repeats``, the C variable ``odd`` is nonzero
    afterwards if a window of the plane has a NaN.
    """
    body, x, y = cx.body, cx.input(0), cx.output()
    cx.call("LANES", PRELUDE)
    cx.call("larger", LARGER)
    out_depth, out_height, out_width = window.output
    pitch = pitch_of(window)
    band: Dim = larger(1, smaller(out_height, KEPT // larger(1, pitch)))
    band_size = band * pitch
    most = KEPT if isinstance(band_size, Size) else band_size
    body.line(f"const float *image = {x.name} + c * {window.plane};")
    body.line(f"float *out = {y.name} + c * {window.pixels};")
    body.line(f"float kept[{most + 2 * MOST_LANES + _reach(window)}];")
    if isinstance(band, Size):
        body.line(f"const ptrdiff_t band = {band};")
        band = Size.named("band", band.low, band.high)
    with body.loop("o", out_depth), body.loop("h", out_height, step=str(band)):
        rows = f"{out_height} - h < {band} ? {out_height} - h : {band}"
        even = not isinstance(out_height, Size) and out_height % band == 0
        body.line(f"const ptrdiff_t rows = {band if even else rows};")
        _emit_down(cx, window, joining, pitch)
        body.line(f"float *to = out + (o * {out_height} + h) * {out_width};")
        _emit_along(cx, window, joining, pitch, result)


def _reach(window: Window) -> int:
    """Return the distance from the first to the last column of a window."""
    return (window.kernel[2] - 1) * window.dilations[2]


def _first_last(cx: KernelContext, window: Window, i: int, place: str) -> None:
    """Declare ``lowi`` and ``highi``: the positions of the window that are
    inside along dim ``i``."""
    size, kernel, step = window.input[i], window.kernel[i], window.dilations[i]
    body = cx.body
    body.line(f"const ptrdiff_t start{i} = {place} * {window.strides[i]} - {window.begin[i]};")
    low = f"start{i} < 0 ? (-start{i} + {step - 1}) / {step} : 0"
    body.line(f"const ptrdiff_t low{i} = {low};")
    most = f"start{i} < {size} ? ({size - 1} - start{i}) / {step} + 1 : 0"
    body.line(f"const ptrdiff_t most{i} = {most};")
    body.line(f"const ptrdiff_t high{i} = most{i} < {kernel} ? most{i} : {kernel};")


def _emit_down(cx: KernelContext, window: Window, joining: Joining, pitch: int) -> None:
    """Write ``kept``: for each output row of the band, the rows of its window combined."""
    body, (_, height, width) = cx.body, window.input
    left = smaller(window.begin[2], pitch)
    n = larger(0, smaller(pitch - left, width))
    down = declare_down(cx, joining)
    _first_last(cx, window, 0, "o")
    with body.loop("r", "rows"):
        _first_last(cx, window, 1, "(h + r)")
        plane, row = window.dilations[0] * height * width, window.dilations[1] * width
        first = f"((start0 + low0 * {window.dilations[0]}) * {height} + start1 "
        first += f"+ low1 * {window.dilations[1]}) * {width}"
        call = f"{down}(image + ({first}), high0 - low0, {plane}, high1 - low1, {row}"
        call += f", kept + r * {pitch}, {left}, {n}, {pitch});"
        body.line(f"odd |= {call}" if joining.repeats else call)


def _steps(kernel: int) -> Iterator[tuple[int, ...]]:
    """Yield the offsets that each pass combines, until a window has ``kernel`` columns.

    A pass combines two or three windows of the previous size, which may overlap.
    """
    size = 1
    while size < kernel:
        wide = min(3 * size, kernel)
        yield (0, wide - size) if wide <= 2 * size else (0, size, wide - size)
        size = wide


def _emit_along(
    cx: KernelContext, window: Window, joining: Joining, pitch: int, result: str
) -> None:
    """Write the combination of columns of ``kept``, and the results."""
    body, wide, kernel = cx.body, window.output[2], window.kernel[2]
    step, dilation = window.strides[2], window.dilations[2]
    if step == 1:
        passes = list(_steps(kernel)) if joining.repeats else [tuple(range(kernel))][: kernel - 1]
        for places in passes:
            with body.block(f"for (ptrdiff_t i = 0; i < rows * {pitch}; i += LANES)"):
                body.line("vec a = *(const vec *)(kept + i);")
                for place in places[1:]:
                    at = f"*(const vec *)(kept + i + {place * dilation})"
                    body.line(f"{{ const vec v = {at}; a = {joining.vectors}; }}")
                body.line("*(vec *)(kept + i) = a;")
        if result == "a" and isinstance(wide, Size):
            room = f"{window.pixels} - (o * {window.output[1]} + h) * {wide}"
            body.line(f"{dense_rows(cx)}(kept, {pitch}, to, rows, {wide}, {room});")
            return
        if result == "a":
            with body.loop("r", "rows"):
                body.line(f"memcpy(to + r * {wide}, kept + r * {pitch}, {4 * wide});")
            return
    by_two = step == 2 and kernel <= MOST_SUMMED
    if by_two:
        _emit_by_two(cx, window, joining, pitch)
        if result == "a":
            return
    with body.loop("r", "rows"):
        body.line(f"const float *from = kept + r * {pitch};")
        with body.loop("q", wide):
            if by_two:
                body.line(f"const float a = to[r * {wide} + q];")
            else:
                body.line(f"float a = from[q * {step}];")
            for k in range(1, 1 if by_two or step == 1 else kernel):
                at = f"from[q * {step} + {k * dilation}]"
                body.line(f"{{ const float v = {at}; a = {joining.one}; }}")
            body.line(f"to[r * {wide} + q] = {result};")
        if by_two:
            body.line("(void)from;")


def _emit_by_two(cx: KernelContext, window: Window, joining: Joining, pitch: int) -> None:
    """Write results at stride 2.

    A vector may be stored beyond a row's end, which the next row overwrites, but not beyond the
    band's end.
    """
    body, wide, dilation = cx.body, window.output[2], window.dilations[2]
    cx.call("copy_seconds", SECONDS)
    cx.call("odds", ODDS)
    places = [k * dilation for k in range(window.kernel[2])]
    with body.loop("r", "rows"):
        body.line(f"const float *row = kept + r * {pitch};")
        with body.block(f"for (ptrdiff_t q = 0; q < {wide}; q += LANES)"):
            first = True
            for pair in sorted({place // 2 for place in places}):
                at = f"row + 2 * q + {2 * pair}"
                body.line(f"const vec near{pair} = *(const vec *)({at});")
                body.line(f"const vec far{pair} = *(const vec *)({at} + LANES);")
                for half, macro in ((0, "EVENS"), (1, "ODDS")):
                    if 2 * pair + half in places:
                        value = f"{macro}(near{pair}, far{pair})"
                        if first:
                            body.line(f"vec a = {value};")
                        else:
                            body.line(f"{{ const vec v = {value}; a = {joining.vectors}; }}")
                        first = False
            body.line(f"const ptrdiff_t left = (rows - r) * {wide} - q;")
            body.line("if (left >= LANES)")
            body.line(f"    *(vec *)(to + r * {wide} + q) = a;")
            body.line("else")
            body.line(f"    memcpy(to + r * {wide} + q, &a, 4 * (size_t)left);")
