"""Recurrence: the steps of an LSTM, GRU or RNN in one direction, as one loop.

The products of all inputs are computed before. A step is the product of the state, then the cell.
If all samples have all steps, the states are one matrix, and the product uses vector micro-kernels.
Otherwise it runs along rows of the transposed weights, where all gates are neighbors, one sample
after the other.
"""

from __future__ import annotations

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import FLOAT, KernelContext, kernel
from smelt.native.kernels.recurrence_together import emit_together, is_flat, is_together, start
from smelt.native.kernels.recurrent_cells import (
    gru_end,
    gru_gates,
    gru_reset,
    lstm_cell,
    rnn_cell,
)
from smelt.program.recurrence import CELLS
from smelt.program.storage import Needs


def _needs(instance: Instance) -> Needs:
    """Return the scratch space: gates and, for a GRU, the reset state, of one sample or of all.

    Flat cells have a copy of the gates.
    """
    _, batch, rows = instance.shape(0)
    is_batched = is_together(instance)
    size = rows + instance.shape(1)[0] + (rows if is_batched and is_flat(instance) else 0)
    return Needs(workspace=(batch if is_batched else 1) * size * instance.type(0).size)


@kernel("Recurrence", kinds=FLOAT, needs=_needs)
def recurrence(cx: KernelContext) -> None:
    """Write all steps. The state is stored in the output of the last state."""
    if is_together(cx):
        emit_together(cx)
    else:
        _emit_each_sample(cx)


def _emit_each_sample(cx: KernelContext) -> None:
    """Write one sample after the other, each with its own number of steps.

    ```
    for (ptrdiff_t s = 0; s < length; ++s) {
        gates[j] = x0[at * 5 + j];
        gates[j] += h[k] * x1[k * 5 + j];
        h[j] = tanh(gates[j]);
        y0[at * 5 + j] = h[j];
    ```
    """
    type_, body = cx.type(0), cx.body
    steps, batch, rows = cx.shape(0)
    hidden = cx.shape(1)[0]
    source, weights, output = cx.input(0), cx.input(1), cx.output(0)
    body.line(f"{type_.name} *gates = {cx.scratch(type_)};")
    with body.loop("b", batch):
        _length(cx, steps)
        start(cx, "h", 1, 2, hidden)
        if cx.attributes["cell"] == "LSTM":
            start(cx, "c", 2, 3, hidden)
        with body.loop("s", "length"):
            at = "length - 1 - s" if cx.attributes["reverse"] else "s"
            body.line(f"const ptrdiff_t at = ({at}) * {batch} + b;")
            with body.loop("j", rows):
                body.line(f"gates[j] = {source.name}[at * {rows} + j];")
            _CELLS[str(cx.attributes["cell"])](cx, weights.name, hidden)
            with body.loop("j", hidden):
                body.line(f"{output.name}[at * {hidden} + j] = h[j];")
        with body.loop("s", steps, start="length"), body.loop("j", hidden):
            body.line(f"{output.name}[(s * {batch} + b) * {hidden} + j] = 0;")


def _length(cx: KernelContext, steps: int) -> None:
    """Declare ``length``, the number of steps of sample ``b``."""
    lengths = cx.optional(6)
    if lengths is None:
        cx.body.line(f"const ptrdiff_t length = {steps};")
        return
    cx.body.line(f"const ptrdiff_t listed_length = (ptrdiff_t){lengths.name}[b];")
    cx.body.line(
        "const ptrdiff_t length = "
        f"listed_length < 0 ? 0 : listed_length > {steps} ? {steps} : listed_length;"
    )


def _add_product(cx: KernelContext, state: str, weights: str, first: int, count: int) -> None:
    """Write ``gates[first:first + count] += state @ weights[:, first:first + count]``."""
    _, _, rows = cx.shape(0)
    hidden, c_type = cx.shape(1)[0], cx.type(0).name
    with cx.body.loop("k", hidden):
        cx.body.line(f"const {c_type} v = {state}[k];")
        cx.body.line(f"const {c_type} *row = {weights} + k * {rows};")
        with cx.body.loop("j", first + count, start=first):
            cx.body.line("gates[j] += v * row[j];")


def _rnn(cx: KernelContext, weights: str, hidden: int) -> None:
    """Write the product and the cell of an RNN."""
    _add_product(cx, "h", weights, 0, hidden)
    rnn_cell(cx, hidden)


def _lstm(cx: KernelContext, weights: str, hidden: int) -> None:
    """Write the products of all gates and the cell of an LSTM."""
    _add_product(cx, "h", weights, 0, CELLS["LSTM"].gates * hidden)
    lstm_cell(cx, hidden)


def _gru(cx: KernelContext, weights: str, hidden: int) -> None:
    """Write the products and the cell of a GRU: gates update, reset, hidden.

    With ``linear_before_reset``, the product of the hidden gate is computed before the reset, which
    also scales its bias.
    """
    c_type, bias, body = cx.type(0).name, cx.optional(5), cx.body
    _add_product(cx, "h", weights, 0, 2 * hidden)
    body.line(f"{c_type} *reset = gates + {3 * hidden}, *last = gates + {2 * hidden};")
    gru_gates(cx, hidden)
    if cx.attributes["linear_before_reset"]:
        with body.loop("j", hidden):
            body.line(f"reset[j] = {f'{bias.name}[j]' if bias else '0'};")
        with body.loop("k", hidden), body.loop("j", hidden):
            at = f"k * {3 * hidden} + {2 * hidden} + j"
            body.line(f"reset[j] += h[k] * {weights}[{at}];")
    else:
        gru_reset(cx, hidden)
        _add_product(cx, "reset", weights, 2 * hidden, hidden)
    gru_end(cx, hidden)


_CELLS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
