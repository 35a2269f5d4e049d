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
    """Return the activations; gates are clipped first, the output of an LSTM's cell is not."""
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
    """Return the step of a recurrence.

    Samples that have ended keep their state; their outputs are zero.

    A sample of length 0 ends in zero, as in ONNX Runtime; ONNX does not define it.
    """
    steps = len(call.input(0))
    cell, reverse = call.text("cell"), bool(call.attributes["reverse"])
    advance = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}[cell](call, _functions(call))
    count = len(call.inputs)

    def run(*arrays: Array) -> None:
        """Run all steps, or each sample by its own length."""
        gates, weights, first, cell_first, peepholes, bias, lengths = arrays[:count]
        y, h, *cells = arrays[count:]
        h[...] = 0 if first is None else first
        c = cells[0] if cells else h
        if cells:
            c[...] = 0 if cell_first is None else cell_first
        constants = (weights, peepholes, bias)
        if lengths is not None:
            _run_each_length(
                advance, gates, y, (h, c), np.clip(lengths, 0, steps), constants, reverse
            )
            return
        state, cell_state = h, c
        for s in range(steps)[:: -1 if reverse else 1]:
            state, cell_state = advance(gates[s], state, cell_state, *constants)
            y[s] = state
        c[...] = cell_state
        h[...] = state

    return Step(run)


def _run_each_length(
    advance: Advance,
    gates: Array,
    y: Array,
    states: tuple[Array, Array],
    end: Array,
    constants: tuple[Array, Array | None, Array | None],
    reverse: bool,
) -> None:
    """Run a batch whose samples have different lengths, given by ``end``.

    Step ``s`` advances the samples with ``s < end``. A reversed sample starts at its own last step.
    """
    h, c = states
    h[end == 0] = c[end == 0] = 0
    y[...] = 0
    samples = np.arange(len(end))
    for s in range(len(gates)):
        now = samples[s < end]
        at = end[now] - 1 - s if reverse else np.full(len(now), s)
        state, cell_state = advance(gates[at, now], h[now], c[now], *constants)
        c[now] = cell_state
        h[now] = state
        y[at, now] = state


Advance = Callable[
    [Array, Array, Array, Array, "Array | None", "Array | None"], tuple[Array, Array]
]


def _rnn(call: Call, functions: list[Function]) -> Advance:
    """Return the step of an RNN: the next state and the unchanged cell."""
    return lambda x, h, c, w, p, b: (functions[0](x + h @ w), c)


def _lstm(call: Call, functions: list[Function]) -> Advance:
    """Return the step function of an LSTM cell."""
    f, g, last = functions
    coupled = call.attributes["input_forget"]

    def advance(
        x: Array, h: Array, c: Array, w: Array, p: Array | None, b: Array | None
    ) -> tuple[Array, Array]:
        """Return the next hidden and cell state."""
        sums = x + h @ w  # of the gates input, output and forget, then of the cell
        size = h.shape[-1]
        fresh = g(sums[:, 3 * size :])
        if p is None:
            gates = f(sums[:, : 3 * size])
            enter, out, keep = (gates[:, i * size : (i + 1) * size] for i in range(3))
            c = (1 - enter if coupled else keep) * c + enter * fresh
            return out * last(c), c
        i, o, forget, _ = np.split(sums, 4, axis=-1)
        pi, po, pf = np.split(p, 3)
        enter = f(i + pi * c)
        keep = 1 - enter if coupled else f(forget + pf * c)
        c = keep * c + enter * fresh
        return f(o + po * c) * last(c), c

    return advance


def _gru(call: Call, functions: list[Function]) -> Advance:
    """Return the step function of a GRU cell."""
    f, g = functions
    reset_after = call.attributes["linear_before_reset"]

    def advance(
        x: Array, h: Array, c: Array, w: Array, p: Array | None, b: Array | None
    ) -> tuple[Array, Array]:
        """Return the next hidden state, and ``c`` as it is."""
        size = h.shape[-1]
        gates = f(x[:, : 2 * size] + h @ w[:, : 2 * size])
        update, reset = gates[:, :size], gates[:, size:]
        inner = w[:, 2 * size :]
        after = h @ inner + (0 if b is None else b) if reset_after else None
        reset_product = (reset * h) @ inner if after is None else reset * after
        fresh = g(x[:, 2 * size :] + reset_product)
        return (1 - update) * fresh + update * h, c

    return advance
