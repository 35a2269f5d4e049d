"""Recognize one step of an LSTM, GRU or RNN in the forms that exporters write.

    LSTM    c' = f * c + i * g        h' = o * tanh(c')
    GRU     n = tanh(xn + r * hn)     h' = n + z * (h - n), or (1 - z) * n + z * h
            n = tanh(xn + rn(r * h))  the other form of ONNX (linear_before_reset=0)
    RNN     h' = tanh(x + h), or relu

All letters except h and c are gates: the sigmoid or tanh of a sum of products with constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import onnx_ir as ir

from smelt.passes.recurrence.gates import Bias, Gate, GateReader, Weight

ROOTS = ("Mul", "Add", "Tanh", "Relu")


@dataclass(frozen=True)
class Cell:
    """One step of a recurrent cell. ``gates`` are in ONNX's order.

    ``state`` is h, None if the sums do not tell which of two operands is the state; ``memory`` is c
    of an LSTM. For a GRU, ``reset`` is the part of the new gate that depends on the reset gate:
    with ``before``, a product of the state with constants, scaled by the reset gate afterwards;
    else a product of ``scaled``, which is the state times the reset gate.
    """

    kind: str
    result: ir.Value
    gates: tuple[Gate, ...]
    state: ir.Value | None
    nodes: frozenset[ir.Node]
    memory: ir.Value | None = None
    next_memory: ir.Value | None = None
    reset: Gate | None = None
    before: bool = False
    scaled: ir.Value | None = None

    def operands(self) -> tuple[ir.Value, ...]:
        """Return the values that the first gate multiplies by constants."""
        return tuple(self.gates[0].weights)

    def state_weights(self, state: ir.Value) -> tuple[Weight | None, ...]:
        """Return the recurrent weights of all gates and of ``reset``, if ``state`` is the state."""
        reset = self.reset
        reset_weight = reset.of(self.scaled or state) if reset is not None else None
        return (*(gate.of(state) for gate in self.gates), reset_weight)

    def input_weights(self, x: ir.Value) -> tuple[Weight | None, ...]:
        """Return the weights of all gates for the input ``x``."""
        return tuple(gate.of(x) for gate in self.gates)

    def biases(self) -> tuple[tuple[Bias, ...], ...]:
        """Return the biases of all gates, and of ``reset``."""
        reset_biases = () if self.reset is None else self.reset.biases
        return (*(gate.biases for gate in self.gates), reset_biases)

    def with_state(self, state: ir.Value) -> Cell | None:
        """Return the same step with ``state`` as its state; None if the other operands are not one
        input."""
        other_operands = {x for gate in self.gates for x in gate.weights if x is not state}
        if len(other_operands) != 1:
            return None
        (x,) = other_operands
        if None in self.input_weights(x):
            return None
        weights = self.state_weights(state)
        recurrent_weights = weights[:-1] if self.reset is None else (*weights[:2], weights[-1])
        if None in recurrent_weights or (self.reset is not None and weights[2] is not None):
            return None
        return replace(self, state=state)

    def input(self) -> ir.Value:
        """Return x, the operand that is not the state."""
        return next(x for x in self.operands() if x is not self.state)


class CellReader:
    """Finds a cell from the node that computes its next state."""

    def __init__(self, reader: GateReader) -> None:
        self.reader = reader

    def cell(self, root: ir.Node) -> Cell | None:
        """Return the step whose next state ``root`` computes, else None."""
        for read in (self._lstm, self._gru, self._rnn):
            self.reader.start()
            cell = read(root.outputs[0])
            if cell is not None:
                return replace(cell, nodes=frozenset(self.reader.nodes))
        return None

    def _pairs(self, value: ir.Value | None, op_type: str) -> Iterator[tuple[ir.Value, ir.Value]]:
        """Yield the two operands of a commutative node, in both orders."""
        node = self.reader.node(value, op_type)
        if node is not None and len(node.inputs) == 2:
            a, b = node.inputs
            if a is not None and b is not None:
                yield a, b
                yield b, a

    def _activated(self, value: ir.Value | None, op_type: str) -> Gate | None:
        """Return the gate behind the activation ``op_type``, else None."""
        node = self.reader.node(value, op_type)
        return self.reader.gate(node.inputs[0]) if node is not None else None

    def _lstm(self, value: ir.Value) -> Cell | None:
        """Return the LSTM step that computes ``value = o * tanh(f * c + i * g)``, else None.

        Products and sums are commutative, so every order of their operands is tried.
        """
        for output_value, tanh in self._pairs(value, "Mul"):
            node, output_gate = (
                self.reader.node(tanh, "Tanh"),
                self._activated(output_value, "Sigmoid"),
            )
            if node is None or output_gate is None:
                continue
            next_memory = node.inputs[0]
            for kept, written in self._pairs(next_memory, "Add"):
                for forget_value, memory in self._pairs(kept, "Mul"):
                    forget_gate = self._activated(forget_value, "Sigmoid")
                    if forget_gate is None:
                        continue
                    for input_value, candidate_value in self._pairs(written, "Mul"):
                        input_gate, candidate = (
                            self._activated(input_value, "Sigmoid"),
                            self._activated(candidate_value, "Tanh"),
                        )
                        if input_gate is not None and candidate is not None:
                            nodes = frozenset[ir.Node]()
                            gates = (input_gate, output_gate, forget_gate, candidate)
                            return Cell(
                                "LSTM",
                                value,
                                gates,
                                state=None,
                                nodes=nodes,
                                memory=memory,
                                next_memory=next_memory,
                            )
        return None

    def _gru(self, value: ir.Value) -> Cell | None:
        """Return the GRU step that computes ``value = (1 - z) * n + z * h``, else None.

        z is a sigmoid and n a tanh of a sum whose recurrent term is scaled by the reset gate.
        """
        for update, state, new_state in self._mixtures(value):
            update_gate = self._activated(update, "Sigmoid")
            tanh = self.reader.node(new_state, "Tanh")
            if update_gate is None or tanh is None:
                continue
            for input_part, reset_part in self._pairs(tanh.inputs[0], "Add"):
                step = self._new_gate(value, update_gate, state, input_part, reset_part)
                if step is not None:
                    return step
        return None

    def _mixtures(self, value: ir.Value) -> Iterator[tuple[ir.Value, ir.Value, ir.Value]]:
        """Yield ``(z, h, n)`` for each way to read ``value`` as ``n + z * (h - n)`` or ``(1 - z)
        * n + z * h``.

        These are the update gate, the old state and the new state of a GRU.
        """
        for addend, product in self._pairs(value, "Add"):
            for update, other_factor in self._pairs(product, "Mul"):
                difference = self.reader.node(other_factor, "Sub")
                if difference is not None and difference.inputs[1] is addend:
                    assert difference.inputs[0] is not None
                    yield update, difference.inputs[0], addend
                for remainder, new_state in self._pairs(addend, "Mul"):
                    minus = self.reader.node(remainder, "Sub")
                    if (
                        minus is not None
                        and minus.inputs[1] is update
                        and self._is_one(minus.inputs[0])
                    ):
                        yield update, other_factor, new_state

    def _is_one(self, value: ir.Value | None) -> bool:
        """True for a constant of one element that equals 1."""
        return self.reader.constants.scalar(value) == 1

    def _new_gate(
        self, result: ir.Value, z: Gate, state: ir.Value, unscaled: ir.Value, scaled: ir.Value
    ) -> Cell | None:
        """Return the GRU step with the new gate ``tanh(plain + scaled)``, else None.

        ``scaled`` is ``r * (W h)`` or ``W (r * h)``.
        """
        n = self.reader.gate(unscaled)
        if n is None:
            return None
        for reset, inner in self._pairs(scaled, "Mul"):
            r, hidden = self._activated(reset, "Sigmoid"), self.reader.gate(inner)
            if r is not None and hidden is not None and set(hidden.weights) == {state}:
                nodes = frozenset[ir.Node]()
                return Cell("GRU", result, (z, r, n), state, nodes, reset=hidden, before=True)
        hidden = self.reader.gate(scaled)
        if hidden is None or len(hidden.weights) != 1:
            return None
        (operand,) = hidden.weights
        for reset, carried in self._pairs(operand, "Mul"):
            r = self._activated(reset, "Sigmoid")
            if r is not None and carried is state:
                nodes = frozenset[ir.Node]()
                return Cell("GRU", result, (z, r, n), state, nodes, reset=hidden, scaled=operand)
        return None

    def _rnn(self, value: ir.Value) -> Cell | None:
        """Return the RNN step that computes ``value``: tanh or Relu of one gate; else None."""
        for op_type in ("Tanh", "Relu"):
            gate = self._activated(value, op_type)
            if gate is not None and len(gate.weights) == 2:
                return Cell(op_type, value, (gate,), state=None, nodes=frozenset())
        return None
