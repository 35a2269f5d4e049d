"""Refuse a model without past whose logits depend on later tokens, such as an encoder.

Two sequences begin with the same tokens and end with others. In a decoder, the logits of the
common tokens are equal.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from smelt.compiler import compile_model
from smelt.decoding.ports import Ports
from smelt.decoding.state import Array
from smelt.decoding.table_rows import rows_read_by
from smelt.errors import UsageError
from smelt.ir.cloning import clone_model

COMMON, TAIL = 4, 3
"""How many tokens both sequences begin with, and how many follow."""

TOLERANCE = 1e-3
"""Rounding may change logits by this part of the largest finite magnitude."""


def refuse_later_tokens(model: ir.Model, ports: Ports, constants: Mapping[str, Array]) -> None:
    """Raise UsageError E801 if the logits of a token change with the tokens after it.

    ``model`` takes any number of tokens, computes the logits of all, and has no past. The second
    sequence ends with other tokens than the first in each place.
    """
    artifact = compile_model(clone_model(model), target="host", engine="numpy")
    inputs = {value.name or "": value for value in artifact.model.graph.inputs}
    names = [value.name for value in artifact.model.graph.outputs]
    place = names.index(ports.logits)
    random = np.random.default_rng(0)
    words = model_vocabulary(model, ports)
    batch = _batch(inputs, ports, constants)
    start, tail = (random.integers(words, size=(batch, count)) for count in (COMMON, TAIL))
    found = []
    for end in (tail, (tail + 1) % words):
        tokens = np.concatenate([start, end], axis=1)
        feeds = _feeds(tokens, ports, constants)
        arrays = [
            np.asarray(feeds[name], value.dtype.numpy() if value.dtype is not None else None)
            for name, value in inputs.items()
        ]
        found.append(np.asarray(artifact(*arrays)[place], np.float64)[:, :COMMON])
    largest = np.abs(found[0][np.isfinite(found[0])]).max(initial=0)
    if np.allclose(found[0], found[1], rtol=0, atol=TOLERANCE * largest, equal_nan=True):
        return
    raise UsageError(
        "E801",
        "the model is not a decoder of tokens",
        why="the logits of a token depend on later tokens, as in an encoder such as BERT: other "
        f"tokens after the first {COMMON} change the logits of those",
        fix="export the model with a causal mask: in transformers, the class ...ForCausalLM, with "
        "is_decoder=True for an encoder's architecture",
    )


def refuse_fixed_length(model: ir.Model, ports: Ports) -> None:
    """Raise UsageError E801 if ``model``, which has no past, takes one number of tokens only."""
    tokens = next(value for value in model.graph.inputs if value.name == ports.tokens)
    count = None if tokens.shape is None else tokens.shape[1]
    if isinstance(count, int):
        raise UsageError(
            "E801",
            "the model is not a decoder of tokens",
            why=f"it takes {count} tokens, and has no past",
            fix="export it with a dynamic number of tokens: dynamic_shapes={'input_ids': {1: 'S'}}",
        )


def _batch(inputs: Mapping[str, ir.Value], ports: Ports, constants: Mapping[str, Array]) -> int:
    """Return the number of sequences that the model or one of ``constants`` fixes, else 1."""
    dims = {name: value.shape[0] for name, value in inputs.items() if value.shape}
    batch = dims[ports.tokens]
    if isinstance(batch, int):
        return batch
    sizes = (np.shape(array)[:1] for name, array in constants.items() if dims.get(name) == batch)
    return next((size for (size,) in sizes), 1)


def _feeds(tokens: Array, ports: Ports, constants: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays of all inputs by name for the sequences ``tokens``, int64[B, S]."""
    batch, count = tokens.shape
    feeds = dict(constants) | ports.fixed_arrays(tokens, rows=count)
    feeds[ports.tokens] = tokens
    if ports.mask is not None:
        feeds[ports.mask] = np.ones((batch, count))
    if ports.positions is not None:
        positions = np.broadcast_to(np.arange(count), (batch, count))
        feeds[ports.positions] = positions[(0,) * (2 - ports.position_rank)]
    return feeds


def model_vocabulary(model: ir.Model, ports: Ports) -> int:
    """Return the number of tokens that ``model`` knows, a large one if it does not say.

    It is the number of rows of the embedding; without one, the last dim of the logits.
    """
    rows = rows_read_by(model, ports.tokens)
    if rows is not None:
        return rows
    logits = next(value for value in model.graph.outputs if value.name == ports.logits)
    last = None if logits.shape is None else logits.shape[-1]
    return last if isinstance(last, int) else 1 << 31
