"""Pooling by rows: the rows of a window are combined first, then the columns.

Compilers vectorize both loops, because neither tests for the end of the image: rows outside are
skipped, and columns outside are the identity of the combination.
"""

from __future__ import annotations

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.kernel import KernelContext
from smelt.program.run_sizes import Size, highest

ROW = 160
"""The longest row on the stack, in elements."""

MOST_COLUMNS = 16
"""The most columns of a window; each is a line of C."""


def chunk_of(window: Window) -> int:
    """Return the output columns that one array of ``ROW`` elements suffices for.

    It is below 1 if the window is wider than the array.
    """
    step, reach = window.strides[2], (window.kernel[2] - 1) * window.dilations[2]
    return min(highest(window.output[2]), (ROW - 1 - reach) // step + 1)


def supports(window: Window) -> bool:
    """True if the window lies in one plane and fits into a row of ``ROW`` elements."""
    return window.flat and window.kernel[2] <= MOST_COLUMNS and chunk_of(window) >= 1


def emit_rows(cx: KernelContext, window: Window, start: str, step: str, result: str) -> None:
    """Write a pooling: ``step`` combines ``a`` and ``v``, and ``result`` is computed from ``a``.

    In ``result``, ``rows`` is the number of rows inside of the image, ``q`` the output column.
    """
    x, y, body = cx.input(0), cx.output(), cx.body
    (_, height, width), (_, out_height, out_width) = window.input, window.output
    (_, kernel_h, _), (_, stride_h, stride_w), (_, dilation_h, _) = (
        window.kernel,
        window.strides,
        window.dilations,
    )
    chunk, t = chunk_of(window), x.type.name
    planes = (y.shape[0] * y.shape[1], out_height)
    with body.loops(("c", "h"), planes, body.widest(planes)):
        body.line(f"const {t} *image = {x.name} + c * {height * width};")
        body.line(f"{y.type.name} *out = {y.name} + (c * {out_height} + h) * {out_width};")
        body.line(f"const ptrdiff_t top = h * {stride_h} - {window.begin[1]};")
        body.line(f"const ptrdiff_t low = top < 0 ? (-top + {dilation_h - 1}) / {dilation_h} : 0;")
        body.line(
            f"ptrdiff_t inside = top < {height} ? ({height - 1} - top) / {dilation_h} + 1 : 0;"
        )
        body.line(f"const ptrdiff_t high = inside < {kernel_h} ? inside : {kernel_h};")
        body.line("const ptrdiff_t rows = high > low ? high - low : 0;")
        with body.loop("w", out_width, step=chunk):
            body.line(f"const ptrdiff_t first = w * {stride_w} - {window.begin[2]};")
            _emit_down(cx, window, start, step)
            body.line(
                f"const ptrdiff_t end = {out_width} - w < {chunk} ? {out_width} - w : {chunk};"
            )
            with body.loop("j", "end"):
                if "q" in result:
                    body.line("const ptrdiff_t q = w + j;")
                body.line(f"{t} a = row[j * {stride_w}];")
                for k in range(1, window.kernel[2]):
                    at = f"row[j * {stride_w} + {k * window.dilations[2]}]"
                    body.line(f"{{ const {t} v = {at}; a = {step}; }}")
                body.line(f"out[w + j] = {result};")
        body.line("(void)rows;")


def _stays_inside(window: Window) -> bool:
    """True if ``row`` is inside of the image for every chunk, so its loop has a constant length."""
    (_, _, out_width), chunk = window.output, chunk_of(window)
    if isinstance(out_width, Size) or isinstance(window.input[2], Size):
        return False
    reach = (window.kernel[2] - 1) * window.dilations[2]
    end = (out_width - 1) * window.strides[2] + reach + 1 - window.begin[2]
    return window.begin[2] == 0 and out_width % chunk == 0 and end <= window.input[2]


def _emit_down(cx: KernelContext, window: Window, start: str, step: str) -> None:
    """Write ``row``: the rows of the window, combined, from column ``first`` on."""
    body, t = cx.body, cx.type(0).name
    width = window.input[2]
    reach = (window.kernel[2] - 1) * window.dilations[2]
    size = (chunk_of(window) - 1) * window.strides[2] + reach + 1
    body.line(f"{t} row[{size}];")
    left, right = "0", str(size)
    if not _stays_inside(window):
        left, right = "left", "right"
        body.line(f"const ptrdiff_t left = first < 0 ? (-first < {size} ? -first : {size}) : 0;")
        body.line(f"const ptrdiff_t beyond = {width} - first;")
        ends = f"beyond < {size} ? (beyond > left ? beyond : left) : {size}"
        body.line(f"const ptrdiff_t right = {ends};")
    with body.loop("j", size):
        body.line(f"row[j] = {start};")
    with body.loop("k", "high", "low"):
        at = f"(top + k * {window.dilations[1]}) * {width} + first"
        body.line(f"const ptrdiff_t at = {at};")
        with body.loop("j", right, left):
            body.line(f"const {t} v = image[at + j], a = row[j];")
            body.line(f"row[j] = {step};")
