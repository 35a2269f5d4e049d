"""The cells of LSTM, GRU and RNN, element by element.

In the C of one sample, ``gates`` are the sums of a step, ``h`` its state, and ``c`` the cell of an
LSTM.
"""

from __future__ import annotations

from typing import Any, cast

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.lane_math import in_lanes
from smelt.native.kernels.statements import Statements, read_once
from smelt.program.recurrence import activate


def _activate(cx: KernelContext, number: int, to: str, argument: str, *, gate: bool = True) -> None:
    """Write ``to = activation(argument)``, with activation function ``number`` of the instruction.

    The argument of a gate is clipped. The output of an LSTM cell is not clipped, as ONNX Runtime
    reads the specification.
    """
    type_, attributes = cx.type(0), cx.attributes
    keys = ("activations", "alphas", "betas")
    name, alpha, beta = (cast("tuple[Any, ...]", attributes[key])[number] for key in keys)
    m = Statements(type_)
    with cx.body.block(""):
        cx.body.line(f"{type_.name} v = {argument};")
        clip = cx.float("clip")
        if clip > 0 and gate:
            bound = type_.literal(clip)
            cx.body.line(f"v = v > {bound} ? {bound} : v < -{bound} ? -{bound} : v;")
        result = m.scalar(activate(m, (str(name), float(alpha), float(beta)), m.named("v")))
        before, text = read_once(m.lines, result.name)
        for line in before:
            cx.body.line(in_lanes(cx, line))
        cx.body.line(f"{to} = {in_lanes(cx, text)};")


def rnn_cell(cx: KernelContext, hidden: int) -> None:
    """Write the new state: the activated sum."""
    with cx.body.loop("j", hidden):
        _activate(cx, 0, "h[j]", "gates[j]")


def lstm_cell(cx: KernelContext, hidden: int) -> None:
    """Write the gates input, output, forget, cell, and the new cell and state.

    Peepholes are in the order input, output, forget.
    """
    peep, c_type = cx.optional(4), cx.type(0).name

    def gate(number: int, state: str) -> str:
        """Return the C of a gate's sum, with its peephole to ``state``."""
        peephole_term = f" + {peep.name}[{number * hidden} + j] * {state}" if peep else ""
        return f"gates[{number * hidden} + j]{peephole_term}"

    with cx.body.loop("j", hidden):
        # C name, number of the gate in ``gates``, number of its activation function
        for name, number, function in (("in", 0, 0), ("keep", 2, 0), ("fresh", 3, 1)):
            if name == "keep" and cx.attributes["input_forget"]:
                cx.body.line(f"const {c_type} keep = 1 - in;")
                continue
            cx.body.line(f"{c_type} {name};")
            argument = gate(number, "c[j]") if number < 3 else f"gates[{number * hidden} + j]"
            _activate(cx, function, name, argument)
        cx.body.line("c[j] = keep * c[j] + in * fresh;")
        cx.body.line(f"{c_type} out;")
        _activate(cx, 0, "out", gate(1, "c[j]"))
        _activate(cx, 2, "h[j]", "c[j]", gate=False)
        cx.body.line("h[j] *= out;")


def gru_gates(cx: KernelContext, hidden: int) -> None:
    """Write the activation of the gates update and reset."""
    with cx.body.loop("j", 2 * hidden):
        _activate(cx, 0, "gates[j]", "gates[j]")


def gru_reset(cx: KernelContext, hidden: int) -> None:
    """Write ``reset``, the state times the reset gate."""
    with cx.body.loop("j", hidden):
        cx.body.line(f"reset[j] = gates[{hidden} + j] * h[j];")


def gru_end(cx: KernelContext, hidden: int) -> None:
    """Write the new state from ``last``, the sum of the hidden gate.

    With ``linear_before_reset``, ``last`` lacks the product of the state, which is in ``reset``.
    """
    with cx.body.loop("j", hidden):
        argument = "last[j]"
        if cx.attributes["linear_before_reset"]:
            argument += f" + gates[{hidden} + j] * reset[j]"
        cx.body.line(f"{cx.type(0).name} fresh;")
        _activate(cx, 1, "fresh", argument)
        cx.body.line("h[j] = (1 - gates[j]) * fresh + gates[j] * h[j];")
