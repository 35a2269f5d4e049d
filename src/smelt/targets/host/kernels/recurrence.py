"""Recurrence: the steps of an LSTM, GRU or RNN in one direction, whole batches at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from smelt.operators.formula import Arrays
from smelt.program.recurrence import activate
from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel

Function = Callable[[Array], Array]


def _functions(call: Call) -> list[Function]:
    """Return the activations of the gates, the candidate and, for an LSTM, the cell.

    With ``clip``, the arguments of the first two are clipped, as ONNX requires.
    """
    attributes: Mapping[str, Any] = call.attributes
    clip = call.real("clip")

    def apply(name: str, alpha: float, beta: float, gate: bool, x: Array) -> Array:
        """Return the activation of ``x``; the argument of a gate is clipped."""
        bounded = np.clip(x, -clip, clip) if clip > 0 and gate else x
        return np.asarray(activate(Arrays(), (name, alpha, beta), bounded))

    activations = zip(*(attributes[key] for key in ("activations", "alphas", "betas")), strict=True)
    return [partial(apply, n, alpha, beta, i < 2) for i, (n, alpha, beta) in enumerate(activations)]


@kernel("Recurrence", wide=True)
def recurrence(call: Call) -> Step:
    """Return the step of an LSTM, GRU or RNN in one direction.

    A sample that has ended keeps its state, and its outputs are zero. The final state of a sample
    of length 0 is zero, as in ONNX Runtime; ONNX does not define it.
    """
    steps = len(call.input(0))
    cell, reverse = call.text("cell"), bool(call.attributes["reverse"])
    advance = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}[cell](call, _functions(call))
    count = len(call.inputs)

    def run(*arrays: Array) -> None:
        """Run all steps, or each sample by its own length."""
        gates, weights, first, cell_first, peepholes, bias, lengths = arrays[:count]
        all_states, hidden, *cells = arrays[count:]
        hidden[...] = 0 if first is None else first
        cells_state = cells[0] if cells else hidden
        if cells:
            cells_state[...] = 0 if cell_first is None else cell_first
        constants = (weights, peepholes, bias)
        if lengths is not None:
            _run_each_length(
                advance,
                gates,
                all_states,
                (hidden, cells_state),
                np.clip(lengths, 0, steps),
                constants,
                reverse,
            )
            return
        state, cell_state = hidden, cells_state
        for step in range(steps)[:: -1 if reverse else 1]:
            state, cell_state = advance(gates[step], state, cell_state, *constants)
            all_states[step] = state
        cells_state[...] = cell_state
        hidden[...] = state

    return Step(run)


def _run_each_length(
    advance: Advance,
    gates: Array,
    all_states: Array,
    states: tuple[Array, Array],
    end: Array,
    constants: tuple[Array, Array | None, Array | None],
    reverse: bool,
) -> None:
    """Run a batch whose samples have different lengths, given by ``end``; write ``all_states``
    and the final ``states`` (hidden and cell).

    Iteration ``step`` advances the samples with ``step < end``. A reversed sample starts at its own
    last step.
    """
    hidden, cells = states
    hidden[end == 0] = cells[end == 0] = 0
    all_states[...] = 0
    samples = np.arange(len(end))
    for step in range(len(gates)):
        running = samples[step < end]
        own_step = end[running] - 1 - step if reverse else np.full(len(running), step)
        state, cell_state = advance(
            gates[own_step, running], hidden[running], cells[running], *constants
        )
        cells[running] = cell_state
        hidden[running] = state
        all_states[own_step, running] = state


Advance = Callable[
    [Array, Array, Array, Array, "Array | None", "Array | None"], tuple[Array, Array]
]


def _rnn(call: Call, functions: list[Function]) -> Advance:
    """Return the step function of an RNN: f(x + h @ w). It passes the cell state on unchanged."""
    return lambda x, h, cell, w, peepholes, bias: (functions[0](x + h @ w), cell)


def _lstm(call: Call, functions: list[Function]) -> Advance:
    """Return the step function of an LSTM cell.

    ``functions`` are those of the gates, of the candidate and of the cell state.
    """
    activate_gate, activate_candidate, activate_cell = functions
    coupled = call.attributes["input_forget"]

    def advance(
        input_gates: Array,
        hidden: Array,
        cell: Array,
        weights: Array,
        peepholes: Array | None,
        b: Array | None,
    ) -> tuple[Array, Array]:
        """Return the next hidden and cell state."""
        # One sum per gate: input, output, forget; the candidate is last.
        sums = input_gates + hidden @ weights
        size = hidden.shape[-1]
        candidate = activate_candidate(sums[:, 3 * size :])
        if peepholes is None:
            gates = activate_gate(sums[:, : 3 * size])
            input_gate, output_gate, forget_gate = (
                gates[:, number * size : (number + 1) * size] for number in range(3)
            )
            cell = (1 - input_gate if coupled else forget_gate) * cell + input_gate * candidate
            return output_gate * activate_cell(cell), cell
        input_sum, output_sum, forget_sum, _ = np.split(sums, 4, axis=-1)
        input_peephole, output_peephole, forget_peephole = np.split(peepholes, 3)
        input_gate = activate_gate(input_sum + input_peephole * cell)
        forget_gate = (
            1 - input_gate if coupled else activate_gate(forget_sum + forget_peephole * cell)
        )
        cell = forget_gate * cell + input_gate * candidate
        return activate_gate(output_sum + output_peephole * cell) * activate_cell(cell), cell

    return advance


def _gru(call: Call, functions: list[Function]) -> Advance:
    """Return the step function of a GRU cell.

    With ``linear_before_reset``, the reset gate scales the product with the hidden weights;
    otherwise it scales the hidden state before that product.
    """
    activate_gate, activate_candidate = functions
    reset_after = call.attributes["linear_before_reset"]

    def advance(
        input_gates: Array,
        hidden: Array,
        no_cell: Array,
        weights: Array,
        no_peepholes: Array | None,
        hidden_bias: Array | None,
    ) -> tuple[Array, Array]:
        """Return the next hidden state, and no cell state."""
        size = hidden.shape[-1]
        gates = activate_gate(input_gates[:, : 2 * size] + hidden @ weights[:, : 2 * size])
        update, reset = gates[:, :size], gates[:, size:]
        candidate_weights = weights[:, 2 * size :]
        product_with_bias = (
            hidden @ candidate_weights + (0 if hidden_bias is None else hidden_bias)
            if reset_after
            else None
        )
        reset_product = (
            (reset * hidden) @ candidate_weights
            if product_with_bias is None
            else reset * product_with_bias
        )
        candidate = activate_candidate(input_gates[:, 2 * size :] + reset_product)
        return (1 - update) * candidate + update * hidden, no_cell

    return advance
