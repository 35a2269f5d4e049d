"""Moves of recurrent operators: RNN, GRU and LSTM, with what exporters write around them."""

from __future__ import annotations

from random_graphs.draft import FLOAT, Draft, Move, dims, needs_some, static

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
HIDDEN = 3


def layer(d: Draft) -> None:
    """One layer of either or both directions, with or without biases and a first state."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) == 3)
    needs_some(x)
    size, kind = static(x, -1), d.rng.choice(list(GATES))
    direction = d.rng.choice(["forward", "reverse", "bidirectional"])
    ways, rows = 2 if direction == "bidirectional" else 1, GATES[kind] * HIDDEN
    weights = [d.normal(ways, rows, size), d.normal(ways, rows, HIDDEN)]
    biases = [d.normal(ways, 2 * rows)] if d.chance(0.6) else []
    extra = {"linear_before_reset": d.rng.choice([0, 1])} if kind == "GRU" else {}
    results = d.ops(
        kind,
        x,
        *weights,
        *biases,
        outputs=3 if kind == "LSTM" else 2,
        hidden_size=HIDDEN,
        direction=direction,
        **extra,
    )
    if d.chance(0.7):
        y = d.op("Transpose", results[0], perm=[0, 2, 1, 3])
        d.op("Reshape", y, d.ints(0, 0, ways * HIDDEN))


def stacked(d: Draft) -> None:
    """Two layers, the second of what the first gives."""
    layer(d)
    layer(d)


MOVES: list[Move] = [layer, layer, stacked]
