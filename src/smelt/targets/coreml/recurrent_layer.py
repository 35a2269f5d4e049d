"""A recurrent node for the rows of RNN, GRU and LSTM: its weights, states and activations.

Weights have ONNX's layout: W is (direction, gates * size, input), R (direction, gates * size,
size), and the bias (direction, 2 * gates * size).
"""

from __future__ import annotations

import numpy as np

from smelt.targets.coreml.call import Call
from smelt.targets.coreml.rows.slices import take
from smelt.targets.coreml.writer import Refused, Val

ACTIVATIONS = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}
DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


class Layer:
    """A recurrent node: its constant weights, and its input ``x`` as (step, batch, input).

    ``w`` and ``r`` are the weights of input and state, ``wb`` and ``rb`` their biases.
    """

    def __init__(self, c: Call) -> None:
        """Read the node; raises Refused for weights that are computed and unknown activations."""
        self.c, self.name = c, c.node.op_type
        self.size = int(c.attribute("hidden_size"))
        self.directions = DIRECTIONS[c.attribute("direction")]
        self.batch_first = bool(c.attribute("layout"))
        weights = [c.array(1), c.array(2)]
        if weights[0] is None or weights[1] is None:
            raise Refused("its weights are computed; Core ML needs constants")
        self.w, self.r = weights[0], weights[1]
        count = GATES[self.name] * self.size
        bias = c.array(3) if c.has(3) else np.zeros((len(self.directions), 2 * count), np.float32)
        peephole = c.array(7) if self.name == "LSTM" and c.has(7) else None
        if bias is None or (c.has(7) and self.name == "LSTM" and peephole is None):
            raise Refused("its bias is computed; Core ML needs constants")
        self.wb, self.rb, self.peephole = bias[:, :count], bias[:, count:], peephole
        self.clip = c.attribute("clip")
        x = c.x(0)
        self.x = c.transpose(x, [1, 0, 2]) if self.batch_first else x
        self.steps, self.batch = self.x.dims[:2]
        self._check_lengths()
        names = list(c.attribute("activations") or DEFAULTS[self.name] * len(self.directions))
        if any(name not in ACTIVATIONS for name in names):
            raise Refused(f"Core ML's recurrent layers have {', '.join(ACTIVATIONS)} only")
        self.activations = names

    def _check_lengths(self) -> None:
        """Raise Refused unless all sequences of the batch have the whole length."""
        if self.c.has(4):
            lengths = self.c.ints(4)
            if lengths is None or any(length != self.steps for length in lengths):
                raise Refused("its sequences have lengths of their own")

    def initial(self, index: int, direction: int) -> Val:
        """Return the initial state in input ``index`` of one direction, (batch, size).

        It is zeros if the input is missing.
        """
        c = self.c
        if not c.has(index):
            if self.batch is None:
                shape = c.vector([c.size(self.x, 1), self.size])
                zero = np.asarray(0, self.x.element.numpy)
                dims = (self.batch, self.size)
                return c.w.op("fill", self.x.element, dims, shape=shape, value=zero)
            return c.w.constant(np.zeros((self.batch, self.size), self.x.element.numpy))
        state = c.x(index)
        return take(c, state, np.asarray(direction), 1 if self.batch_first else 0)

    def activate(self, direction: int, number: int, x: Val) -> Val:
        """Return activation ``number`` of a direction, applied to ``x``, which is clipped first if
        the node has a clip."""
        if self.clip is not None:
            x = _clip(self.c, x, float(self.clip))
        name = self.activations[direction * len(DEFAULTS[self.name]) + number]
        return self.c.op(ACTIVATIONS[name], x)


def _clip(c: Call, x: Val, limit: float) -> Val:
    """Return ``x`` clipped to ``-limit`` and ``limit``."""
    return c.w.op("clip", x.element, x.dims, x=x, alpha=-limit, beta=limit)
