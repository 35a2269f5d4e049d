"""The cells of LSTM, GRU and RNN: what becomes of the gates of a step, element by element.

C of one sample: ``gates`` are the sums of a step, ``h`` its state, ``c`` the cell of an LSTM.
"""

from __future__ import annotations

from typing import Any, cast

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.lane_math import in_lanes
from smelt.native.kernels.statements import Statements, read_once
from smelt.program.recurrence import activate


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


def rnn_cell(cx: KernelContext, hidden: int) -> None:
    """The state is the activated sum."""
    with cx.body.loop("j", hidden):
        _activate(cx, 0, "h[j]", "gates[j]")


def lstm_cell(cx: KernelContext, hidden: int) -> None:
    """Gates input, output, forget, cell; peepholes in the order input, output, forget."""
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


def gru_gates(cx: KernelContext, hidden: int) -> None:
    """The gates update and reset, activated."""
    with cx.body.loop("j", 2 * hidden):
        _activate(cx, 0, "gates[j]", "gates[j]")


def gru_reset(cx: KernelContext, hidden: int) -> None:
    """The state as the reset gate leaves it."""
    with cx.body.loop("j", hidden):
        cx.body.line(f"reset[j] = gates[{hidden} + j] * h[j];")


def gru_end(cx: KernelContext, hidden: int) -> None:
    """The new state from what ``last`` holds of the hidden gate; if the reset comes after the
    product, ``reset`` holds that."""
    with cx.body.loop("j", hidden):
        argument = "last[j]"
        if cx.attributes["linear_before_reset"]:
            argument += f" + gates[{hidden} + j] * reset[j]"
        cx.body.line(f"{cx.type(0).name} fresh;")
        _activate(cx, 1, "fresh", argument)
        cx.body.line("h[j] = (1 - gates[j]) * fresh + gates[j] * h[j];")
