"""Discrete Fourier transforms along an axis, of any length, of complex and real numbers.

Lengths with small factors are computed by mixed-radix steps, others as a convolution of such a
length (Bluestein). A vector contains one element of several rows. A single or long row is treated
as a matrix: its columns are transformed first, then its rows. Relative to the largest result, in
units in the last place, errors stay below 1 + log2(n) for steps, and twice that for convolutions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smelt.native.kernels.fourier.block_transpose import transpose_rows
from smelt.native.kernels.fourier.codelets import LANES_APART
from smelt.native.kernels.fourier.plan import Chirp, twiddles
from smelt.native.kernels.fourier.roots import roots
from smelt.native.kernels.fourier.steps import in_halves, in_steps
from smelt.native.kernels.fourier.work import Work
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import FLOAT, KernelContext, kernel
from smelt.program.instruction import SPECTRUM
from smelt.program.storage import Needs


def _needs(instance: Instance) -> Needs:
    """Return the scratch space of the intermediate arrays."""
    return Needs(workspace=Work.of(instance).workspace)


@kernel(SPECTRUM, needs=_needs, kinds=FLOAT, shared=True)
def spectrum(cx: KernelContext) -> None:
    """Write loops that load, transform and store rows."""
    _Emitter(cx, Work.of(cx)).emit()


class _Emitter:
    """Writes the kernel; in C, ``here`` is the array with the rows, ``there`` the other one."""

    def __init__(self, cx: KernelContext, work: Work) -> None:
        self.cx, self.work, self.body = cx, work, cx.body
        self.blocks, self.t, self.lanes = work.blocks, work.type.name, work.lanes
        self.apart = self.blocks.apart(work.room)

    def emit(self) -> None:
        """Write C for all rows, as single rows, adjacent columns or blocks of rows."""
        self.cx.call("LANES_APART", LANES_APART)
        size = 2 * self.blocks.lanes * self.work.room
        self.body.line(f"{self.t} *const first = {self.cx.scratch(self.work.type)};")
        self.body.line(f"{self.t} *const second = first + {size};")
        if self.work.cut:
            count = 4 * self.lanes * max(self.work.cut)
            self.body.line(f"{self.t} *const lanes = second + {size};")
            self.body.line(f"memset(lanes, 0, {count} * sizeof({self.t}));")
            self._by_row()
        elif self.work.is_interleaved:
            self._by_columns()
        else:
            self._by_rows()

    def _by_row(self) -> None:
        """Write a loop over single rows, each transformed as a matrix."""
        work, body = self.work, self.body
        with body.shared_loop("r", work.outer * work.inner):
            body.line(f"{self.t} *here = first, *there = second;")
            source = f"{self.cx.input(0).name} + {self._row_offset(work.input_count, work.parts)}"
            body.line(f"const {self.t} *const from = {source};")
            result_parts = self.cx.output_shape()[-1]
            target = f"{self.cx.output().name} + {self._row_offset(work.count, result_parts)}"
            body.line(f"{self.t} *const to = {target};")
            self._load_row()
            self._transform()
            self._store_row()

    def _row_offset(self, count: int, parts: int, row: str = "r") -> str:
        """Return the offset of row ``row`` of ``count`` numbers, as C; ``inner`` rows lie
        side by side.
        """
        if self.work.is_last:
            return f"({row}) * {count * parts}"
        inner = self.work.inner
        return f"({row}) / {inner} * {count * parts * inner} + ({row}) % {inner} * {parts}"

    @property
    def _numbers_read(self) -> int:
        """The count of numbers of a row that the transform reads."""
        work = self.work
        return min(work.input_count, work.half if work.from_half else work.length)

    def _load_row(self) -> None:
        """Write the load of one row: real and imaginary parts apart, padded with zeros."""
        work, body, count_read = self.work, self.body, self._numbers_read
        paired = work.by_pairs and work.of_real
        count = count_read // 2 if paired else count_read
        step, imaginary = (2, 1) if paired or work.parts == 2 else (1, 0)
        if not work.is_last:  # numbers are ``inner`` apart; a pair is two of them
            step *= work.inner
            imaginary *= work.inner if paired else 1
        body.line("LANES_APART")
        with body.loop("k", count):
            body.line(f"here[k] = from[k * {step}];")
            other = f"from[k * {step} + {imaginary}]" if imaginary else "0"
            body.line(f"here[{self.apart} + k] = {other};")
        if paired and count_read % 2:
            body.line(f"here[{count}] = from[{count * step}];")
            body.line(f"here[{self.apart + count}] = 0;")
            count += 1
        needed = work.half if work.from_half else work.size
        if count < needed:
            with body.loop("k", needed, start=count):
                body.line(f"here[k] = here[{self.apart} + k] = 0;")

    def _store_row(self) -> None:
        """Write the store of one row."""
        work, body = self.work, self.body
        if work.from_half:
            if work.by_pairs:
                step, imaginary, count = 2 * work.inner, work.inner, work.size
            else:
                step, imaginary, count = work.inner, 0, work.length
        else:
            step, imaginary, count = 2 * work.inner, 1, work.count
        body.line("LANES_APART")
        with body.loop("k", count):
            body.line(f"to[k * {step}] = here[k];")
            if imaginary:
                body.line(f"to[k * {step} + {imaginary}] = here[{self.apart} + k];")

    def _by_rows(self) -> None:
        """Write a loop over blocks of rows that are contiguous, or whose elements are far apart."""
        work, body, lanes = self.work, self.body, self.lanes
        rows = work.outer * work.inner
        with body.shared_loop("r", rows, step=lanes):
            body.line(f"{self.t} *here = first, *there = second;")
            body.line(
                f"const ptrdiff_t left = {rows} - r, count = left < {lanes} ? left : {lanes};"
            )
            self._transformed_block(self._move_rows)

    def _transformed_block(self, move: Callable[[str, int, int, int, int], None]) -> None:
        """Write the load, the transform and the store of a block of rows."""
        work = self.work
        self._clear()
        pitch, numbers = self._real_rows(work.parts, self._numbers_read)
        move("in", pitch, numbers, work.parts, work.input_count)
        self._transform()
        parts = self.cx.output_shape()[-1]
        pitch, results = self._result_rows(parts)
        move("out", pitch, results, parts, work.count)

    def _move_rows(self, end: str, pitch: int, numbers: int, parts: int, count: int) -> None:
        """Write the copy of ``numbers`` numbers of each row between array and block."""
        work, body = self.work, self.body
        array = self.cx.input(0).name if end == "in" else self.cx.output().name
        if work.is_last:
            name, row = transpose_rows(self.cx, work.type), count * parts
            if end == "in":
                body.line(f"{name}({array} + r * {row}, {row}, here, {pitch}, count, {numbers});")
            else:
                body.line(f"{name}(here, {pitch}, {array} + r * {row}, {row}, {numbers}, count);")
            return
        steps = (parts * work.inner, 1) if parts == 2 else (work.inner, 0)
        with body.loop("l", "count"):
            declared = f"const {self.t} *const from" if end == "in" else f"{self.t} *const to"
            body.line(f"{declared} = {array} + {self._row_offset(count, parts, 'r + l')};")
            with body.loop("e", numbers // parts):
                for part in range(parts):
                    block = f"here[(e * {parts} + {part}) * {pitch} + l]"
                    outside = f"[e * {steps[0]} + {part}]"
                    pair = (block, f"from{outside}") if end == "in" else (f"to{outside}", block)
                    body.line(f"{pair[0]} = {pair[1]};")

    def _real_rows(self, parts: int, numbers: int) -> tuple[int, int]:
        """Return the distance between numbers of an input row in a block, and
        how many there are."""
        if parts == 2:
            return self.lanes, 2 * numbers
        return (self.lanes if self.work.by_pairs and self.work.of_real else 2 * self.lanes), numbers

    def _result_rows(self, parts: int) -> tuple[int, int]:
        """Return the distance between numbers of a result row in a block, and how many there are.
        Real parts alone are ``2 * lanes`` apart: imaginary parts lie between."""
        if parts == 2:
            return self.lanes, 2 * self.work.count
        return (self.lanes if self.work.by_pairs else 2 * self.lanes), self.work.count

    def _clear(self) -> None:
        """Write zeros into a block that the load does not fill."""
        work, lanes = self.work, self.lanes
        needed = work.half if work.from_half else work.size
        pitch, numbers = self._real_rows(work.parts, self._numbers_read)
        full = pitch == lanes and numbers == 2 * needed
        size = f"{2 * lanes * needed} * sizeof({self.t})"
        self.body.line(f"if (count < {lanes})" if full else "/* The load leaves gaps. */")
        self.body.line(f"    memset(here, 0, {size});" if full else f"memset(here, 0, {size});")

    def _by_columns(self) -> None:
        """Write a loop over blocks of rows whose elements are interleaved in memory."""
        work, body, lanes = self.work, self.body, self.lanes
        blocks = f"({work.inner} + {lanes - 1}) / {lanes}"
        body.line(f"const ptrdiff_t blocks = {blocks};")
        with body.shared_loop("r", f"{work.outer} * blocks"):
            body.line(f"const ptrdiff_t o = r / blocks, i = r % blocks * {lanes};")
            body.line(f"{self.t} *here = first, *there = second;")
            body.line(f"const ptrdiff_t left = {work.inner} - i;")
            body.line(f"const ptrdiff_t count = left < {lanes} ? left : {lanes};")
            self._transformed_block(self._move_columns)

    def _move_columns(self, end: str, pitch: int, numbers: int, parts: int, count: int) -> None:
        """Write the copy of ``numbers`` elements between columns of the array and a block."""
        work, body = self.work, self.body
        array = self.cx.input(0).name if end == "in" else self.cx.output().name
        declared = f"const {self.t} *const from" if end == "in" else f"{self.t} *const to"
        first = f"o * {count * work.inner * parts} + i * {parts}"
        body.line(f"{declared}_{end} = {array} + {first};")
        with body.loop("e", numbers // parts):
            body.line("LANES_APART")
            with body.loop("l", "count"):
                for part in range(parts):
                    block = f"here[(e * {parts} + {part}) * {pitch} + l]"
                    outside = f"[(e * {work.inner} + l) * {parts} + {part}]"
                    pair = (
                        (block, f"from_in{outside}") if end == "in" else (f"to_out{outside}", block)
                    )
                    body.line(f"{pair[0]} = {pair[1]};")

    def _transform(self) -> None:
        """Write the transform of the numbers in ``here``, whose result is in ``here``, too.

        Pairs of real numbers are made complex numbers before it, or are made from them after it.
        """
        work, k = self.work, np.arange(self.work.size)
        if work.from_half and work.by_pairs:
            table = self._table(roots(k, work.length, 1))
            self._call("to_pairs", "here, there", table, work.size, 2)
            self._swap()
        elif work.from_half:
            self._call("mirror", "here", None, work.length, 1)
        if work.convolved:
            self._convolve()
        else:
            self._transform_directly(work.size, work.sign)
        if work.of_real and work.by_pairs:
            table = self._table(roots(k, work.length, work.sign))
            self._call("from_pairs", "here, there", table, work.size, 2)
            self._swap()
            if work.count == work.length:
                self._call("mirror", "here", None, work.length, 1)
        if work.inverse:
            by = work.type.literal(1 / work.length)
            count = work.size if work.from_half else work.count
            self._call("scale", "here", by, count, 1)

    def _convolve(self) -> None:
        """Write the transform as a convolution with a chirp; inverse transforms are taken by
        conjugates.
        """
        work, size = self.work, self.work.size
        tables = Chirp.of(size, work.convolved, work.sign)
        chirp, spectrum = self._table(tables.chirp), self._table(tables.spectrum)
        self._call("chirp", "here, there", chirp, f"{size}, {tables.room}", 2)
        self._swap()
        self._transform_directly(tables.room, -1)
        self._call("conjugate", "here", spectrum, tables.room, 1)
        self._transform_directly(tables.room, -1)
        self._call("final", "here", chirp, size, 1)

    def _transform_directly(self, size: int, sign: int) -> None:
        """Write the transform of a length with small factors; a cut row is treated as a matrix."""
        type_ = self.work.type
        if self.work.cut:
            name, tables = in_halves(self.cx, type_, self.lanes, self.work.cut, sign)
            self.body.line(f"{name}(here, there, lanes, {tables}, {self.apart});")
            self._swap()
            return
        name = in_steps(self.cx, type_, self.lanes, size, sign)
        self.body.line(f"here = {name}(here, there, {self._table(twiddles(size, sign))});")
        self.body.line("there = here == first ? second : first;")

    def _call(self, name: str, arrays: str, table: str | None, sizes: object, count: int) -> None:
        """Write the call of a function of ``fourier.ends``, which prepares or completes a block."""
        full, text = self.blocks.function(name)
        self.cx.call(full, text)
        aparts = [str(self.apart)] * count
        arguments = [arrays, *([table] if table else []), str(sizes), *aparts]
        self.body.line(f"{full}({', '.join(arguments)});")

    def _swap(self) -> None:
        """Write the swap of ``here`` and ``there``."""
        self.body.line(f"{{ {self.t} *const other = here; here = there; there = other; }}")

    def _table(self, array: np.ndarray) -> str:
        """Return the C name of a constant table."""
        return self.cx.constant(_with_type(array, self.work), self.work.type)


def _with_type(array: np.ndarray, work: Work) -> np.ndarray:
    """Return a flat array with the element type of the transform."""
    return np.asarray(array, np.float32 if work.type.size == 4 else np.float64).reshape(-1)
