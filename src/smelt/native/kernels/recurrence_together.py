"""Recurrence of all samples at once: the states of a step are a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from smelt.native.kernels.epilogue import Epilogue, SideOperand
from smelt.native.kernels.float_panels import pack
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.recurrent_cells import (
    gru_end,
    gru_gates,
    gru_reset,
    lstm_cell,
    rnn_cell,
)
from smelt.native.kernels.vector import MOST_LANES
from smelt.native.kernels.vector_dot import Matrices, emit_packed

FLAT = 4 * MOST_LANES
"""The fewest units of one sample that fill vectors well enough."""


def is_together(instance: Instance) -> bool:
    """True if this file has a kernel: float32, constant weights, and static sizes above 0.

    Without ``sequence_lens``, so all samples have the same number of steps.
    """
    numbers = (*instance.shape(0), *instance.shape(1))
    return (
        all(type(number) is int and number > 0 for number in numbers)
        and instance.type(0).name == "float"
        and instance.slot(6) is None
        and instance.instruction.inputs[1] in instance.program.constants
    )


def is_flat(instance: Instance) -> bool:
    """True if one loop computes the cells of all samples, because those of one do not fill vectors.

    The gates are then stored gate by gate, not sample by sample.
    """
    batch, hidden = instance.shape(0)[1], instance.shape(1)[0]
    return batch > 1 and hidden < FLAT and hidden % MOST_LANES > 0 and instance.slot(4) is None


def start(cx: KernelContext, name: str, output: int, initial: int, hidden: int) -> None:
    """Declare ``name``, the state of sample ``b``, and set it to its initial value or zero.

    A sample without steps ends in zero, as in ONNX Runtime; ONNX does not specify it.
    """
    initial_state = cx.optional(initial)
    cx.body.line(f"{cx.type(0).name} *{name} = {cx.output(output).name} + b * {hidden};")
    with cx.body.loop("j", hidden):
        value = f"{initial_state.name}[b * {hidden} + j]" if initial_state else "0"
        if initial_state and cx.optional(6):
            value = f"length > 0 ? {value} : 0"
        cx.body.line(f"{name}[j] = {value};")


def emit_together(cx: KernelContext) -> None:
    """Write a loop over steps; each computes all samples."""
    type_, body = cx.type(0), cx.body
    steps, batch, rows = cx.shape(0)
    hidden, cell = cx.shape(1)[0], str(cx.attributes["cell"])
    operand, output = cx.input(0), cx.output(0)
    samples, units = (1, batch * hidden) if is_flat(cx) else (batch, hidden)
    body.line(f"{type_.name} *all = {cx.scratch(type_)};")
    with body.loop("b", batch):
        start(cx, "h", 1, 2, hidden)
        if cell == "LSTM":
            start(cx, "c", 2, 3, hidden)
    with body.loop("s", steps):
        now = f"({steps - 1} - s)" if cx.attributes["reverse"] else "s"
        body.line(f"const {type_.name} *input_gates = {operand.name} + {now} * {batch * rows};")
        for products, write in _TOGETHER[cell](cx, hidden):
            for product in products:
                emit_packed(cx, product)
            with body.loop("b", samples):
                body.line(f"{type_.name} *h = {cx.output(1).name} + b * {units};")
                if cell == "LSTM":
                    body.line(f"{type_.name} *c = {cx.output(2).name} + b * {units};")
                write(units)
        source = f"{cx.output(1).name}, {batch * hidden * type_.size}"
        body.line(f"memcpy({output.name} + {now} * {batch * hidden}, {source});")


Stage: TypeAlias = tuple[list[Matrices], Callable[[int], None]]
"""A part of a step: the products of all samples, and a function that writes the cells which read
them. Its argument is the number of units in a cell loop: those of one sample, or of all."""


def _gates(cx: KernelContext, name: str, source: str, stride: int, count: int, *, to: int) -> None:
    """Declare ``name``: ``count`` gates of sample ``b``, in rows ``stride`` apart in ``source``.

    If cells are flat, it points to a copy for all samples, gate by gate, which begins ``to`` gates
    after the space for products.

    ```
    float *gates = all + 60;
    for (ptrdiff_t g = 0; g < 4; ++g) {
        for (ptrdiff_t i = 0; i < 2; ++i) {
            for (ptrdiff_t j = 0; j < 6; ++j)
                gates[(g * 2 + i) * 6 + j] = all[i * 24 + g * 6 + j];
    ```
    """
    _, batch, rows = cx.shape(0)
    hidden, c_type, body = cx.shape(1)[0], cx.type(0).name, cx.body
    if not is_flat(cx):
        kind = c_type if source == "all" else f"const {c_type}"
        body.line(f"{kind} *{name} = {source} + b * {stride};")
        return
    body.line(f"{c_type} *{name} = all + {batch * (rows + hidden + to * hidden)};")
    with body.loops(("g", "i", "j"), (count, batch, hidden)):
        at = f"(g * {batch} + i) * {hidden} + j"
        body.line(f"{name}[{at}] = ({source})[i * {stride} + g * {hidden} + j];")


def _product(
    cx: KernelContext,
    state: str,
    columns: tuple[int, int],
    to: str,
    side_operand: SideOperand | None,
) -> Matrices:
    """Return ``to = state @ weights[:, columns]``, plus the side operand."""
    _, batch, _ = cx.shape(0)
    hidden, (first, count) = cx.shape(1)[0], columns
    selected = np.asarray(cx.program.constants[cx.instruction.inputs[1]])[:, first : first + count]
    packed = cx.constant(pack(selected, batch), cx.type(1))
    epilogue = Epilogue("{0} + {1}", (side_operand,)) if side_operand else Epilogue()
    sides = (state, hidden, 1, packed, count, 1)
    return Matrices(batch, count, hidden, *sides, to, epilogue)


def _simple_together(cx: KernelContext, hidden: int) -> list[Stage]:
    """Return the only stage of an RNN or LSTM: one product for all gates, then the cells."""
    rows = cx.shape(0)[2]
    state = cx.output(1).name
    product = _product(cx, state, (0, rows), "all", SideOperand("input_gates", rows, 1))

    def write(units: int) -> None:
        """Write the cells of ``units`` units."""
        _gates(cx, "gates", "all", rows, rows // hidden, to=0)
        (lstm_cell if cx.attributes["cell"] == "LSTM" else rnn_cell)(cx, units)

    return [([product], write)]


def _gru_together(cx: KernelContext, hidden: int) -> list[Stage]:
    """Return the stages of a GRU: one for the gates update and reset, one for the hidden gate.

    The product of the hidden gate reads the reset state, so it has to wait for the reset gate. With
    ``linear_before_reset``, it reads the state itself and is reset later: one stage has all gates.

    ``all`` has the sums of the gates update and reset of all samples, then the reset state (with
    ``linear_before_reset``, the product of the hidden gate), then the sum of the hidden gate.
    """
    _, batch, rows = cx.shape(0)
    state, bias, reset = cx.output(1).name, cx.optional(5), f"all + {2 * hidden * batch}"
    gates = _product(cx, state, (0, 2 * hidden), "all", SideOperand("input_gates", rows, 1))
    if cx.attributes["linear_before_reset"]:
        by_column = SideOperand(bias.name, 0, 1) if bias else None
        product = _product(cx, state, (2 * hidden, hidden), reset, by_column)

        def all_gates(units: int) -> None:
            """Write all gates and the new state of ``units`` units."""
            _emit_gru_gates(cx, hidden, units)
            _gates(cx, "last", f"input_gates + {2 * hidden}", rows, 1, to=2)
            gru_end(cx, units)

        return [([gates, product], all_gates)]

    def first_gates(units: int) -> None:
        """Write the gates update and reset, and the reset state of ``units`` units."""
        _emit_gru_gates(cx, hidden, units)
        gru_reset(cx, units)

    c_type, last = cx.type(0).name, f"all + {3 * hidden * batch}"

    def hidden_gate(units: int) -> None:
        """Write the hidden gate and the new state of ``units`` units."""
        flat = f"all + {batch * (rows + hidden)}" if is_flat(cx) else f"all + b * {2 * hidden}"
        cx.body.line(f"const {c_type} *gates = {flat}, *last = {last} + b * {hidden};")
        gru_end(cx, units)

    inputs = SideOperand(f"input_gates + {2 * hidden}", rows, 1)
    product = _product(cx, reset, (2 * hidden, hidden), last, inputs)
    return [([gates], first_gates), ([product], hidden_gate)]


def _emit_gru_gates(cx: KernelContext, hidden: int, units: int) -> None:
    """Write the gates update and reset of ``units`` units, and declare ``reset``:
    ``float *reset = all + 24 + b * 6;``.
    """
    batch = cx.shape(0)[1]
    _gates(cx, "gates", "all", 2 * hidden, 2, to=0)
    cx.body.line(f"{cx.type(0).name} *reset = all + {2 * hidden * batch} + b * {hidden};")
    gru_gates(cx, units)


_TOGETHER = {"RNN": _simple_together, "GRU": _gru_together, "LSTM": _simple_together}
