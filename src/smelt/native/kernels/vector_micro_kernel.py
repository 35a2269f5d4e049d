"""The micro-kernel of float products: a few rows by a few vectors of C in registers.

Each step multiplies one element of A per row by a few vectors of B. The caller chooses the rows and
columns, such as pixels. Twelve of sixteen registers hold sums, to keep two multipliers busy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from smelt.native.emit.writer import Writer
from smelt.native.kernels.epilogue import RELU, Epilogue
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.reduction_loop import ReductionLoop
from smelt.native.kernels.register_blocks import MORE_SUMS
from smelt.native.kernels.vector import PRELUDE, TRANSPOSE_4X4
from smelt.program.run_sizes import Dim, Size, same

SUMS = 12
"""The vectors of sums of a micro-kernel."""


COLUMN = "cl"
"""The parameter for the column stride of C, if that is not constant."""


@dataclass(frozen=True)
class MicroKernel:
    """A micro-kernel: ``rows`` by ``vectors`` sums by a ``reduction_loop``, then an ``epilogue``.

    ``start`` is where initial sums come from: "" for 0, ``row`` or ``column`` for a parameter with
    one number per row or column, ``each`` for one per sum in rows of ``pitch``. ``column`` is the
    stride of C along columns, a parameter if it is a run-time size. The function exists under the
    preprocessor condition ``when``.
    """

    rows: int
    vectors: int
    reduction_loop: ReductionLoop
    start: str = ""
    epilogue: Epilogue = field(default_factory=Epilogue)
    column: Dim = 1
    when: str = ""
    pitch: int = 0

    def declare(self, cx: KernelContext) -> str:
        """Declare the C function and return its name."""
        cx.call("LANES", PRELUDE)
        if not same(self.column, 1):
            cx.call("transpose_4x4", TRANSPOSE_4X4)
        text = self._text()
        name = f"tile_{self.reduction_loop.name}_{self.rows}x{self.vectors}_"
        if self.when:
            text = f"#if {self.when}\n{text}#endif\n"
        name += hashlib.sha256(text.encode()).hexdigest()[:6]
        return cx.call(name, text.replace("TILE", name, 1))

    def call(
        self,
        cx: KernelContext,
        arguments: Sequence[str],
        c: str,
        cm: int,
        stored: str,
        start: str = "",
    ) -> None:
        """Write a call; ``stored`` is the range of columns to store, as C."""
        all_arguments = [*arguments, c, str(cm), stored, *([start] if self.start else [])]
        all_arguments += [operand.pointer for operand in self.epilogue.side_operands]
        all_arguments += [str(stride) for _, stride in self._open_strides()]
        cx.body.line(f"{self.declare(cx)}({', '.join(all_arguments)});")

    def _text(self) -> str:
        """Return the C of the function."""
        out = Writer()
        start = (
            f", const float *{'' if self.start == 'each' else 'restrict '}start"
            if self.start
            else ""
        )
        extra = "".join(
            f", const float *r{side}" for side in range(len(self.epilogue.side_operands))
        )
        extra += "".join(f", ptrdiff_t {name}" for name, _ in self._open_strides())
        parameters = f"{self.reduction_loop.parameters}, float *c, ptrdiff_t cm"
        parameters += ", ptrdiff_t from, ptrdiff_t to"
        out.line(f"static NO_INLINE void TILE({parameters}{start}{extra})")
        with out.block(""):
            for row, vector in self._sums():
                out.line(f"vec s{row}_{vector} = {self._first(row, vector)};")
                for number in self._steps_with_own_sums():
                    out.line(f"vec {self._sum(row, vector, number)} = {{ 0 }};")
            self._reduction_loop(out)
            self._store(out)
        return out.text()

    def _open_strides(self) -> list[tuple[str, Dim]]:
        """Return name and stride of each parameter for a run-time stride: ``("cl", stride)``."""
        strides = [(COLUMN, self.column)] + [
            (_stride(number, variable), stride)
            for number, operand in enumerate(self.epilogue.side_operands)
            for variable, stride in (("m", operand.row), ("l", operand.column))
        ]
        return [(name, stride) for name, stride in strides if isinstance(stride, Size)]

    def _sums(self) -> Iterator[tuple[int, int]]:
        """Yield row and vector of each sum: (0, 0), (0, 1), ..., the vectors of a row together."""
        return ((row, vector) for row in range(self.rows) for vector in range(self.vectors))

    def _first(self, row: int, vector: int) -> str:
        """Return the initial value of a sum, as C: a vector at ``start``, or zeros.

        A start per row is added later, by ``_reduction_loop``.
        """
        if self.start == "column":
            return f"*(const vec *)(start{_lanes(vector)})"
        if self.start == "each":
            return f"*(const vec *)(start + {row * self.pitch}{_lanes(vector)})"
        return "{ 0 }"

    def _reduction_loop(self, out: Writer) -> None:
        """Write the reduction loop, and add up the separate sums of its steps.

        ```
        s0_0 += start[0];
        for (ptrdiff_t k = 0; k + 1 < kn; k += 2) {
            ... the steps; ``reduction_loop.after``
        }
        if (k < kn) { ... the first step, once more }
        s0_0 += s0_0_1;
        ```
        """
        if self.start == "row":
            for row, vector in self._sums():
                out.line(f"s{row}_{vector} += start[{row}];")
        if self.reduction_loop.row_start:
            for row in range(self.rows):
                out.line(self.reduction_loop.row_start.replace("@", str(row)))
        for head in self.reduction_loop.heads[:-1]:
            out.line(head)
        with out.block(self.reduction_loop.heads[-1]):
            if self.reduction_loop.before:
                out.line(self.reduction_loop.before)
            for number, (left, right) in enumerate(self.reduction_loop.steps):
                self._step(out, number, left, right)
            if self.reduction_loop.after:
                out.line(self.reduction_loop.after)
        if self.reduction_loop.rest:
            with out.block(f"if ({self.reduction_loop.rest})"):
                self._step(out, 0, *self.reduction_loop.steps[0])
        for number in self._steps_with_own_sums():
            for row, vector in self._sums():
                out.line(f"s{row}_{vector} += {self._sum(row, vector, number)};")

    def _steps_with_own_sums(self) -> range:
        """Return the numbers of the steps that have sums of their own: 1, 2, ... if ``apart``."""
        return range(1, len(self.reduction_loop.steps) if self.reduction_loop.apart else 1)

    def _sum(self, row: int, vector: int, number: int) -> str:
        """Return the C variable that step ``number`` adds to: ``s0_1``, or ``s0_1_2`` for a step 2
        with sums apart."""
        return f"s{row}_{vector}" + (f"_{number}" if number and self.reduction_loop.apart else "")

    def _step(self, out: Writer, number: int, left: str, right: str) -> None:
        """Write one step: load ``right``, and add its products with ``left`` of each row.

        ```
        vec b0_0 = *(const vec *)(b);
        const float a0_0 = a[0];
        s0_0 += a0_0 * b0_0;
        ```
        """
        last = f"s{self.rows - 1}_{self.vectors - 1}"
        fills_registers = self.rows * self.vectors > MORE_SUMS
        # Else gcc 12 keeps the last sum of a row in memory.
        keeps_first_sum = (
            self.rows > 1
            and self.vectors > 1
            and len(self.reduction_loop.steps) > 1
            and not fills_registers
        )
        if number and fills_registers:
            for pointer in (right.partition(" ")[0], left.partition("[")[0]):
                out.line(f"ORDER_AFTER({pointer}, {last});")
        for vector in range(self.vectors):
            out.line(f"vec b{number}_{vector} = *(const vec *)({right}{_lanes(vector)});")
        if self.rows > 1:
            for vector in range(self.vectors):
                out.line(f"KEEP_IN_REGISTER(b{number}_{vector});")
        for m in range(self.rows):
            row = str(self.reduction_loop.offsets[m] if self.reduction_loop.offsets else m)
            out.line(f"const float a{number}_{m} = {left.replace('@', row)};")
            for vector in range(self.vectors):
                out.line(f"{self._sum(m, vector, number)} += a{number}_{m} * b{number}_{vector};")
                if vector == 0 and keeps_first_sum:
                    out.line(f"KEEP_IN_REGISTER(s{m}_0);")

    def _store(self, out: Writer) -> None:
        """Write the epilogue and the stores, with a fast path for a whole tile.

        ```
        if (from == 0 && to == 2 * LANES) {
            *(vec *)(c + 0 * cm) = s0_0;
            …
            return;
        }
        float t[4][2 * LANES];
        *(vec *)(t[0]) = s0_0;
        … store the columns from ``from`` to ``to`` one by one
        ```
        """
        has_no_lines = not self.epilogue.lines
        is_relu = has_no_lines and self.epilogue.text == RELU
        stores_vectors = is_relu or (has_no_lines and self.epilogue.text == "{0}")
        if is_relu:
            for row, vector in self._sums():
                out.line(f"s{row}_{vector} = NOT_BELOW_0(s{row}_{vector});")
        if same(self.column, 1) and stores_vectors:
            with out.block(f"if (from == 0 && to == {self.vectors} * LANES)"):
                for row, vector in self._sums():
                    out.line(f"*(vec *)(c + {row} * cm{_lanes(vector)}) = s{row}_{vector};")
                out.line("return;")
        out.line(f"float t[{self.rows}][{self.vectors} * LANES];")
        for row, vector in self._sums():
            out.line(f"*(vec *)(t[{row}]{_lanes(vector)}) = s{row}_{vector};")
        text = "{0}" if stores_vectors else self.epilogue.text
        if not same(self.column, 1):
            self._store_columns(out, text)
            return
        if not stores_vectors:
            with out.block(f"if (from == 0 && to == {self.vectors} * LANES)"):
                with out.loop("m", self.rows), out.loop("l", f"{self.vectors} * LANES"):
                    self._element(out, text)
                out.line("return;")
        with out.loop("m", self.rows), out.loop("l", "to", "from"):
            self._element(out, text)

    def _store_columns(self, out: Writer, text: str) -> None:
        """Write stores of sums whose rows are contiguous; full blocks of 4 x 4 are transposed."""
        step = COLUMN if isinstance(self.column, Size) else self.column
        if text != "{0}" and not self.epilogue.side_operands:
            with out.loop("m", self.rows), out.loop("l", f"{self.vectors} * LANES"):
                self._element(out, text, "t[m][l]")
            text = "{0}"
        if text == "{0}" and self.rows >= 4:
            firsts = sorted({*range(0, self.rows - 3, 4), self.rows - 4})
            out.line("#if LANES > 1")
            with (
                out.block(f"if (from == 0 && to == {self.vectors} * LANES)"),
                out.loop("l", f"{self.vectors} * LANES", step=4),
            ):
                for first in firsts:
                    at = f"c + {first} + l * {step}"
                    out.line(
                        f"transpose_4x4(&t[{first}][l], {self.vectors} * LANES, {at}, {step});"
                    )
            out.line("else")
            out.line("#endif")
        column = f"c[m * cm + l * {step}]"
        with out.loop("l", "to", "from"), out.loop("m", self.rows):
            self._element(out, text, column)

    def _element(self, out: Writer, text: str, target: str = "c[m * cm + l]") -> None:
        """Write the store of the epilogue's result for the sum at row ``m`` and column ``l``."""
        out.line("const float v0 = t[m][l];")
        names = ["v0"]
        for number, operand in enumerate(self.epilogue.side_operands):
            at = " + ".join(
                var if same(stride, 1) else f"{var} * {_stride_text(number, var, stride)}"
                for var, stride in (("m", operand.row), ("l", operand.column))
                if not same(stride, 0)
            )
            out.line(f"const float v{number + 1} = r{number}[{at or 0}];")
            names.append(f"v{number + 1}")
        for line in self.epilogue.lines if text != "{0}" else ():
            out.line(line.format(*names))
        out.line(f"{target} = {text.format(*names)};")


def _stride(number: int, variable: str) -> str:
    """Return the parameter for a stride of a side operand: ``r0_m`` along rows, else ``r0_l``."""
    return f"r{number}_{variable}"


def _stride_text(number: int, variable: str, stride: Dim) -> str:
    """Return a stride as C: ``8``, or, for a run-time size, its parameter ``r0_m``."""
    return _stride(number, variable) if isinstance(stride, Size) else str(stride)


def _lanes(vector: int) -> str:
    """Return the C offset of a vector: "" for 0, `` + LANES`` for 1, `` + 2 * LANES`` for 2."""
    return "" if vector == 0 else " + LANES" if vector == 1 else f" + {vector} * LANES"
