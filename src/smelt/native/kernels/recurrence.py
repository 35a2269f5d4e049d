"""Recurrence: the steps of an LSTM, GRU or RNN in one direction, as one loop.

The products of the inputs are made before, for all steps at once. What is left of a step is the
product of the state, row by row of its transposed weights, so that all gates of a row are
neighbours, and then the cell.
"""

from __future__ import annotations

from typing import Any, cast

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import FLOAT, KernelContext, kernel
from smelt.native.kernels.lane_math import in_lanes
from smelt.native.kernels.statements import Statements, read_once
from smelt.program.recurrence import CELLS, activate
from smelt.program.storage import Needs


def _needs(instance: Instance) -> Needs:
    """The gates of one step, and for GRU the reset state."""
    _, _, rows = instance.shape(0)
    return Needs(workspace=(rows + instance.shape(1)[0]) * instance.type(0).size)


@kernel("Recurrence", kinds=FLOAT, needs=_needs)
def recurrence(cx: KernelContext) -> None:
    """The state is kept where the last state is returned; one sample after the other."""
    t, body = cx.type(0), cx.body
    steps, batch, rows = cx.shape(0)
    hidden = cx.shape(1)[0]
    x, weights, y = cx.input(0), cx.input(1), cx.output(0)
    body.line(f"{t.name} *gates = {cx.scratch(t)};")
    with body.loop("b", batch):
        _length(cx, steps)
        _start(cx, "h", 1, 2, hidden)
        if cx.attributes["cell"] == "LSTM":
            _start(cx, "c", 2, 3, hidden)
        with body.loop("s", "length"):
            at = "length - 1 - s" if cx.attributes["reverse"] else "s"
            body.line(f"const ptrdiff_t at = ({at}) * {batch} + b;")
            with body.loop("j", rows):
                body.line(f"gates[j] = {x.name}[at * {rows} + j];")
            _CELLS[str(cx.attributes["cell"])](cx, weights.name, hidden)
            with body.loop("j", hidden):
                body.line(f"{y.name}[at * {hidden} + j] = h[j];")
        with body.loop("s", steps, start="length"), body.loop("j", hidden):
            body.line(f"{y.name}[(s * {batch} + b) * {hidden} + j] = 0;")


def _start(cx: KernelContext, name: str, output: int, given: int, hidden: int) -> None:
    """``name`` points at the state of sample ``b``, which begins as given or as zero.

    A sample told to have no steps ends in zero, as in ONNX Runtime: ONNX does not say.
    """
    first = cx.optional(given)
    cx.body.line(f"{cx.type(0).name} *{name} = {cx.output(output).name} + b * {hidden};")
    with cx.body.loop("j", hidden):
        value = f"{first.name}[b * {hidden} + j]" if first else "0"
        if first and cx.optional(6):
            value = f"length > 0 ? {value} : 0"
        cx.body.line(f"{name}[j] = {value};")


def _length(cx: KernelContext, steps: int) -> None:
    lengths = cx.optional(6)
    if lengths is None:
        cx.body.line(f"const ptrdiff_t length = {steps};")
        return
    cx.body.line(f"const ptrdiff_t given = (ptrdiff_t){lengths.name}[b];")
    cx.body.line(f"const ptrdiff_t length = given < 0 ? 0 : given > {steps} ? {steps} : given;")


def _add_product(cx: KernelContext, state: str, weights: str, first: int, count: int) -> None:
    """``gates[first:first + count] += state @ weights[:, first:first + count]``."""
    _, _, rows = cx.shape(0)
    hidden, t = cx.shape(1)[0], cx.type(0).name
    with cx.body.loop("k", hidden):
        cx.body.line(f"const {t} v = {state}[k];")
        cx.body.line(f"const {t} *row = {weights} + k * {rows};")
        with cx.body.loop("j", first + count, start=first):
            cx.body.line("gates[j] += v * row[j];")


def _activate(cx: KernelContext, place: int, to: str, argument: str, *, gate: bool = True) -> None:
    """``to = activation(argument)``, by activation ``place``; the argument of a gate is clipped.

    What leaves the cell of an LSTM is not: so ONNX Runtime reads the specification.
    """
    t, attributes = cx.type(0), cx.attributes
    keys = ("activations", "alphas", "betas")
    name, alpha, beta = (cast("tuple[Any, ...]", attributes[key])[place] for key in keys)
    m = Statements(t)
    with cx.body.block(""):
        cx.body.line(f"{t.name} v = {argument};")
        clip = cx.float("clip")
        if clip > 0 and gate:
            bound = t.literal(clip)
            cx.body.line(f"v = v > {bound} ? {bound} : v < -{bound} ? -{bound} : v;")
        result = m.scalar(activate(m, (str(name), float(alpha), float(beta)), m.named("v")))
        before, text = read_once(m.lines, result.name)
        for line in before:
            cx.body.line(in_lanes(cx, line))
        cx.body.line(f"{to} = {in_lanes(cx, text)};")


def _rnn(cx: KernelContext, weights: str, hidden: int) -> None:
    _add_product(cx, "h", weights, 0, hidden)
    with cx.body.loop("j", hidden):
        _activate(cx, 0, "h[j]", "gates[j]")


def _lstm(cx: KernelContext, weights: str, hidden: int) -> None:
    """Gates input, output, forget, cell; peepholes in the order input, output, forget."""
    _add_product(cx, "h", weights, 0, CELLS["LSTM"].gates * hidden)
    peep, t = cx.optional(4), cx.type(0).name

    def gate(place: int, state: str) -> str:
        seen = f" + {peep.name}[{place * hidden} + j] * {state}" if peep else ""
        return f"gates[{place * hidden} + j]{seen}"

    with cx.body.loop("j", hidden):
        for name, place, function in (("in", 0, 0), ("keep", 2, 0), ("fresh", 3, 1)):
            if name == "keep" and cx.attributes["input_forget"]:
                cx.body.line(f"const {t} keep = 1 - in;")
                continue
            cx.body.line(f"{t} {name};")
            argument = gate(place, "c[j]") if place < 3 else f"gates[{place * hidden} + j]"
            _activate(cx, function, name, argument)
        cx.body.line("c[j] = keep * c[j] + in * fresh;")
        cx.body.line(f"{t} out;")
        _activate(cx, 0, "out", gate(1, "c[j]"))
        _activate(cx, 2, "h[j]", "c[j]", gate=False)
        cx.body.line("h[j] *= out;")


def _gru(cx: KernelContext, weights: str, hidden: int) -> None:
    """Gates update, reset, hidden; a bias apart is inside of what the reset scales."""
    t, apart = cx.type(0).name, cx.attributes["linear_before_reset"]
    bias = cx.optional(5)
    body = cx.body
    _add_product(cx, "h", weights, 0, 2 * hidden)
    body.line(f"{t} *reset = gates + {3 * hidden};")
    with body.loop("j", 2 * hidden):
        _activate(cx, 0, "gates[j]", "gates[j]")
    with body.loop("j", hidden):
        if apart:
            body.line(f"reset[j] = {f'{bias.name}[j]' if bias else '0'};")
        else:
            body.line(f"reset[j] = gates[{hidden} + j] * h[j];")
    if apart:
        with body.loop("k", hidden), body.loop("j", hidden):
            at = f"k * {3 * hidden} + {2 * hidden} + j"
            body.line(f"reset[j] += h[k] * {weights}[{at}];")
    else:
        _add_product(cx, "reset", weights, 2 * hidden, hidden)
    with body.loop("j", hidden):
        argument = f"gates[{2 * hidden} + j]"
        if apart:
            argument += f" + gates[{hidden} + j] * reset[j]"
        body.line(f"{t} fresh;")
        _activate(cx, 1, "fresh", argument)
        body.line("h[j] = (1 - gates[j]) * fresh + gates[j] * h[j];")


_CELLS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
