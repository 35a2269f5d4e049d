"""Requirements of recurrent layers: RNN, GRU, LSTM."""

from __future__ import annotations

from smelt.ir.operand_facts.operands import (
    Fact,
    Facts,
    Operands,
    agree,
    at_least,
    on_or_off,
    one_of,
)

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}

FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
"""The number of activations per direction."""

KNOWN = frozenset(
    {
        *("relu", "tanh", "sigmoid", "affine", "leakyrelu", "thresholdedrelu", "scaledtanh"),
        *("hardsigmoid", "elu", "softsign", "softplus"),
    }
)
"""Activations that ONNX defines; ONNX Runtime ignores their case."""


def _directions(n: Operands) -> int:
    """Return the number of directions."""
    return 2 if n.text("direction", "forward") == "bidirectional" else 1


def _hidden_size(n: Operands) -> int:
    """Return the size of a state."""
    return n.number("hidden_size", 0) or n.size(2, 2)


def _batch_second(n: Operands) -> bool:
    """True if steps come before the batch in X (``layout`` 0), so that X is [steps, batch,
    input].
    """
    return n.number("layout", 0) == 0


def _state(index: int, which: str) -> Fact:
    """Require [directions, batch, hidden size] for the state in operand ``index``."""
    return (
        f"the {which} state is [directions, batch, hidden size]",
        lambda n: (
            not _batch_second(n)
            or agree(n.dims(index), [_directions(n), n.dims(0)[1], _hidden_size(n)])
        ),
    )


def _one_length_per_sequence(n: Operands) -> bool:
    """True if ``sequence_lens`` has one length per sequence; not checked if the batch comes
    first.
    """
    return not _batch_second(n) or agree(n.dims(4), n.dims(0)[1:2])


def _layer(op_type: str) -> tuple[Fact, ...]:
    """Return the requirements that RNN, GRU and LSTM share."""
    gates, functions = GATES[op_type], FUNCTIONS[op_type]

    def weights(n: Operands, columns: int) -> list[int]:
        """Return the shape of W or R, which have ``columns`` columns."""
        return [_directions(n), gates * _hidden_size(n), columns]

    def are_enough(n: Operands) -> bool:
        """True if there are ``functions`` activations for each direction.

        ONNX Runtime takes an empty list for the default, and ignores surplus activations of an RNN.
        """
        count, expected = len(n.texts("activations")), functions * _directions(n)
        return count in (0, expected) or (op_type == "RNN" and count > expected)

    def are_known(n: Operands) -> bool:
        """True if ONNX defines each activation that is used."""
        names = n.texts("activations")[: functions * _directions(n)]
        return all(name.lower() in KNOWN for name in names)

    return (
        ("the sequence has 3 axes", lambda n: n.rank(0) == 3),
        on_or_off("layout"),
        at_least("hidden_size", 1),
        one_of("direction", "forward", "forward", "reverse", "bidirectional"),
        ("there are as many activations as the layer needs, for each direction", are_enough),
        ("activations are those of ONNX", are_known),
        (
            "W is [directions, gates * hidden size, input size]",
            lambda n: agree(n.dims(1), weights(n, n.size(0, 2))),
        ),
        (
            "R is [directions, gates * hidden size, hidden size]",
            lambda n: agree(n.dims(2), weights(n, _hidden_size(n))),
        ),
        (
            "B is [directions, 2 * gates * hidden size]",
            lambda n: agree(n.dims(3), [_directions(n), 2 * gates * _hidden_size(n)]),
        ),
        ("there is a length for each sequence of the batch", _one_length_per_sequence),
        _state(5, "first"),
    )


CLIP: Fact = ("clip is more than 0", lambda n: n.factor("clip", 1.0) > 0)
"""ONNX Runtime ignores the clip of an RNN."""

FACTS: Facts = {
    "RNN": _layer("RNN"),
    "GRU": (*_layer("GRU"), CLIP),
    "LSTM": (
        *_layer("LSTM"),
        CLIP,
        _state(6, "first cell"),
        (
            "peepholes are [directions, 3 * hidden size]",
            lambda n: agree(n.dims(7), [_directions(n), 3 * _hidden_size(n)]),
        ),
    ),
}
