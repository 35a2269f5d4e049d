"""MaxPool, AveragePool and LpPool; the part of each window inside of the image is found once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from smelt.native.kernels import pool_vectors, pooled_rows
from smelt.native.kernels.convolution.window import Window, refuse_window, window_of
from smelt.native.kernels.extremes import extreme_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import FLOAT, NUMBER, KernelContext, kernel
from smelt.native.kernels.pool_rows import emit_rows, supports
from smelt.native.kernels.row_sums import sum_of
from smelt.native.kernels.vector import PRELUDE
from smelt.program.run_sizes import Size, is_empty, same


def _refuse_max(instance: Instance) -> str | None:
    """Return why the window is refused, None if it is supported."""
    return refuse_window(instance)


def _max_and_places(cx: KernelContext, window: Window) -> None:
    """Write the largest elements and their indices in the whole tensor,
    row-major or column-major."""
    type_, places, body = cx.type(0), cx.output(1), cx.body
    depth, height, width = window.input
    nan = " || (v != v && best == best)" if type_.kind == "float" else ""
    p0, p1, p2 = (f"(start{i} + k{i} * {window.dilations[i]})" for i in range(3))
    at = f"({p0} * {height} + {p1}) * {width} + {p2}"
    if cx.int("storage_order"):
        at = f"({p2} * {height} + {p1}) * {depth} + {p0}"
    body.line(f"{places.type.name} *place = {places.name};")
    with _output_pixels(cx, window):
        body.line(f"{type_.name} best = {type_.lowest()};")
        body.line("ptrdiff_t found = -1;")
        with _positions(cx, window), body.block(f"if (found < 0 || v > best{nan})"):
            body.line("best = v;")
            body.line(f"found = {at};")
        body.line("*out++ = best;")
        body.line(f"*place++ = c * {depth * height * width} + found;")


@kernel("MaxPool", kinds=NUMBER, refuse=_refuse_max)
def max_pool(cx: KernelContext) -> None:
    """Write the largest element of each window, NaN if it contains one."""
    window = window_of(cx)
    if len(cx.instruction.outputs) > 1:
        _max_and_places(cx, window)
        return
    if window.whole and cx.type(0).kind == "float":
        largest = extreme_of(cx, cx.type(0), ">")
        with _planes(cx, window):
            cx.body.line(f"*out = {largest}(image, {window.plane});")
        return
    if _fits_vectors(cx) and pool_vectors.supports(window):
        with _by_vectors(cx, lambda: _max_pool_without_vectors(cx, window)):
            cx.body.line("int odd = 0;")
            pool_vectors.emit(cx, window, pooled_rows.LARGEST, "a")
            with cx.body.block("if (odd)"), _pixels(cx, window):
                _emit_largest(cx, window)
        return
    _max_pool_without_vectors(cx, window)


def _max_pool_without_vectors(cx: KernelContext, window: Window) -> None:
    """Write MaxPool without vectors: row by row, or pixel by pixel."""
    type_ = cx.type(0)
    if supports(window):
        # The inner choice is one instruction, and the outer branch is well predicted.
        step = "v == v ? (v > a ? v : a) : v" if type_.kind == "float" else "v > a ? v : a"
        emit_rows(cx, window, type_.lowest(), step, "a")
        return
    with _output_pixels(cx, window):
        _emit_largest(cx, window)


def _emit_largest(cx: KernelContext, window: Window) -> None:
    """Write the largest element of a pixel's window."""
    type_ = cx.type(0)
    nan = " || v != v" if type_.kind == "float" else ""
    cx.body.line(f"{type_.name} best = {type_.lowest()};")
    with _positions(cx, window):
        cx.body.line(f"best = v > best{nan} ? v : best;")
    cx.body.line("*out++ = best;")


@kernel("AveragePool", kinds=FLOAT, refuse=refuse_window)
def average_pool(cx: KernelContext) -> None:
    """Write the mean of each window, over the image or the padded image."""
    window = window_of(cx)
    if window.whole:
        _mean_of_plane(cx, window)
        return
    if _fits_vectors(cx) and pool_vectors.supports_sum(window):
        counts = [
            _window_counts(cx, window, i, place) for i, place in enumerate(("o", "h + r", "q"))
        ]
        divisor, before = f"(float)({' * '.join(counts)})", list[str]()
        if isinstance(window.output[2], Size) and not counts[2].isdigit():
            divisor = f"((float)({' * '.join(counts[:2])}) * counted_columns[q])"
            before = [
                f"float counted_columns[{pool_vectors.KEPT}];",
                f"for (ptrdiff_t q = 0; q < {window.output[2]}; ++q)",
                f"    counted_columns[q] = (float){counts[2]};",
            ]
        with _by_vectors(cx, lambda: _average_pool_without_vectors(cx, window), before):
            pool_vectors.emit(cx, window, pooled_rows.SUM, f"a / {divisor}")
        return
    _average_pool_without_vectors(cx, window)


def _average_pool_without_vectors(cx: KernelContext, window: Window) -> None:
    """Write AveragePool without vectors: row by row, or pixel by pixel."""
    type_ = cx.type(0)
    if supports(window):
        down, along = (_window_counts(cx, window, i, place) for i, place in ((1, "h"), (2, "q")))
        emit_rows(cx, window, "0", "a + v", f"a / ({type_.name})({down} * {along})")
        return
    with _output_pixels(cx, window):
        cx.body.line(f"{type_.name} sum = 0;")
        with _positions(cx, window):
            cx.body.line("sum += v;")
        counts = [f"(high{i} - low{i})" for i in range(3)]
        if cx.int("count_include_pad"):
            counts = [_padded_count(cx, window, i) for i in range(3)]
        cx.body.line(f"*out++ = sum / ({type_.name})({' * '.join(counts)});")


def _mean_of_plane(cx: KernelContext, window: Window) -> None:
    """Write the mean of a window as large as the image."""
    t = cx.type(0)
    total = sum_of(cx, t, "v", "sum")
    with _planes(cx, window):
        cx.body.line(f"*out = {total}(image, {window.plane}, 0) / {t.literal(window.plane)};")


@contextmanager
def _planes(cx: KernelContext, window: Window) -> Iterator[None]:
    """Write a loop over planes of one result each; ``image`` and ``out`` are their C pointers."""
    x, y, body = cx.input(0), cx.output(), cx.body
    with body.loop("c", y.shape[0] * y.shape[1]):
        body.line(f"const {x.type.name} *image = {x.name} + c * {window.plane};")
        body.line(f"{y.type.name} *out = {y.name} + c;")
        yield


def _fits_vectors(cx: KernelContext) -> bool:
    """True for nonempty float32 results."""
    return cx.type(0).name == "float" and not is_empty(cx.output_shape())


@contextmanager
def _by_vectors(
    cx: KernelContext, otherwise: Callable[[], None], before: Sequence[str] = ()
) -> Iterator[None]:
    """Write a loop over planes for CPUs with vectors, and ``otherwise`` for others.

    The lines ``before`` precede the loop; the caller writes its body.

    ```
    #if LANES >= 8
    for (ptrdiff_t c = 0; c < 64; ++c) {
    }
    #else
    ```
    """
    body, shape = cx.body, cx.output_shape()
    cx.call("LANES", PRELUDE)
    body.line(f"#if {pool_vectors.WHEN}")
    for line in before:
        body.line(line)
    with body.loop("c", shape[0] * shape[1]):
        yield
    body.line("#else")
    otherwise()
    body.line("#endif")


@kernel("LpPool", kinds=FLOAT, refuse=refuse_window)
def lp_pool(cx: KernelContext) -> None:
    """Write the p-norm of each window."""
    window, t = window_of(cx), cx.type(0)
    p, root = t.literal(cx.int("p")), t.literal(1 / cx.int("p"))
    with _output_pixels(cx, window):
        cx.body.line(f"{t.name} sum = 0;")
        with _positions(cx, window):
            cx.body.line(f"sum += pow{t.f}(fabs{t.f}(v), {p});")
        cx.body.line(f"*out++ = pow{t.f}(sum, {root});")


def _window_counts(cx: KernelContext, window: Window, i: int, place: str) -> str:
    """Return the C of the number of kernel positions that count at output index ``place`` of dim
    ``i``.

    The numbers are a constant table unless a size is a run-time size.
    """
    size, kernel, step = window.input[i], window.kernel[i], window.dilations[i]
    low, high = 0, size
    if cx.int("count_include_pad"):
        low, high = -window.begin[i], size + window.end[i]
    if isinstance(size, Size) or isinstance(window.output[i], Size):
        if same(window.begin[i], 0) and same(window.end[i], 0) and _reads_no_padding(window, i):
            return str(kernel)
        start = f"({place} * {window.strides[i]} - {window.begin[i]})"
        first = f"({start} < {low} ? ({low + step - 1} - {start}) / {step} : 0)"
        end = f"({start} < {high} ? ({high - 1} - {start}) / {step} + 1 : 0)"
        return f"(({end} < {kernel} ? {end} : {kernel}) - {first})"
    starts = [o * window.strides[i] - window.begin[i] for o in range(window.output[i])]
    counts = [sum(low <= s + k * step < high for k in range(kernel)) for s in starts]
    if len(set(counts)) == 1:
        return str(counts[0])
    name = f"counts_{hashlib.sha256(str(counts).encode()).hexdigest()[:8]}"
    cx.call(name, f"static const int32_t {name}[] = {{ {', '.join(map(str, counts))} }};\n")
    cx.body.line(f"(void){name};")  # unused if the compiler has no vectors
    return f"{name}[{place}]"


def _reads_no_padding(window: Window, i: int) -> bool:
    """True if the dim has no padding that a window reaches: all windows are inside of the image."""
    reach, step = (window.kernel[i] - 1) * window.dilations[i] + 1, window.strides[i]
    return same(window.output[i], (window.input[i] - reach + step) // step)


def _padded_count(cx: KernelContext, window: Window, i: int) -> str:
    """Declare the number of kernel positions inside of the padded image, and return its name."""
    last = window.input[i] + window.end[i] - 1
    cx.body.line(f"ptrdiff_t count{i} = ({last} - start{i}) / {window.dilations[i]} + 1;")
    cx.body.line(f"count{i} = count{i} < {window.kernel[i]} ? count{i} : {window.kernel[i]};")
    return f"count{i}"


@contextmanager
def _output_pixels(cx: KernelContext, window: Window) -> Iterator[None]:
    """Write loops over the output; in each dim i, kernel positions ``lowi`` to ``highi`` are
    inside.
    """
    x, y, body = cx.input(0), cx.output(), cx.body
    body.line(f"{y.type.name} *out = {y.name};")
    with body.loop("c", y.shape[0] * y.shape[1]):
        body.line(f"const {x.type.name} *image = {x.name} + c * {math.prod(window.input)};")
        with _pixels(cx, window):
            yield


@contextmanager
def _pixels(cx: KernelContext, window: Window) -> Iterator[None]:
    """Write loops over the output pixels of a plane."""
    with _dim(cx, window, 0), _dim(cx, window, 1), _dim(cx, window, 2):
        yield


@contextmanager
def _dim(cx: KernelContext, window: Window, i: int) -> Iterator[None]:
    """Write the loop over output dim i, and declare ``lowi`` and ``highi``."""
    size, kernel_size, step = window.input[i], window.kernel[i], window.dilations[i]
    with cx.body.loop(f"o{i}", window.output[i]):
        cx.body.line(f"const ptrdiff_t start{i} = o{i} * {window.strides[i]} - {window.begin[i]};")
        low = f"start{i} < 0 ? (-start{i} + {step - 1}) / {step} : 0"
        high = f"({size - 1} - start{i}) / {step} + 1"
        cx.body.line(f"const ptrdiff_t low{i} = {low};")
        cx.body.line(f"const ptrdiff_t most{i} = start{i} < {size} ? {high} : 0;")
        cx.body.line(
            f"const ptrdiff_t high{i} = most{i} < {kernel_size} ? most{i} : {kernel_size};"
        )
        yield


@contextmanager
def _positions(cx: KernelContext, window: Window) -> Iterator[None]:
    """Write loops over the kernel positions inside of the image; ``v`` is the element."""
    body = cx.body
    at = [f"start{i} + k{i} * {window.dilations[i]}" for i in range(3)]
    _, height, width = window.input
    with (
        body.loop("k0", "high0", "low0"),
        body.loop("k1", "high1", "low1"),
        body.loop("k2", "high2", "low2"),
    ):
        row = f"(({at[0]}) * {height} + {at[1]}) * {width}"
        body.line(f"const {cx.type(0).name} v = image[{row} + {at[2]}];")
        yield
