"""Find the meaning of each input and output of a decoder.

Exporters name them differently, so names are read loosely::

    input_ids, attention_mask, position_ids, past_key_values.0.key  ->  logits, present.0.key
    tokens, position, k0                                            ->  scores, new_k0

A past input belongs to the output whose name differs only in such words, else to the output at the
same place in the order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import onnx_ir as ir

from smelt.decoding.ports import Cache, Ports, name_key
from smelt.errors import UsageError, listed

_TOKENS = ("input_ids", "decoder_input_ids", "ids", "tokens", "token", "input", "x")
_EXAMPLE = "smelt.Decoder(model, inputs={'encoder_hidden_states': array})"


def ports_of(model: ir.Model, given: Collection[str] = (), carried: Collection[str] = ()) -> Ports:
    """Return the meaning of the inputs and outputs of ``model``.

    ``given`` are the inputs that the caller gives. One whose name belongs to an output of its shape
    is the first state of a cache. ``carried`` are the outputs of the model that computes the
    prompt; they include pasts that ``model`` reads and does not return, such as the keys of an
    encoder's states. Raises UsageError E801 if ``model`` is not a decoder: it lacks tokens or
    logits, or has an input of unknown meaning; E804 if ``given`` has a past that grows.
    """
    inputs = {value.name or "": value for value in model.graph.inputs}
    free = {name: value for name, value in inputs.items() if name not in given}
    tokens = _tokens_of(free)
    logits = _logits_of(model.graph.outputs)
    mask = _find(free, r"mask", tokens)
    positions = _find(free, r"position", tokens)
    ranks = {name: len(value.shape) for name, value in free.items() if value.shape is not None}
    token_types = {name: rank for name, rank in ranks.items() if "token_type" in name}
    row_counts = {name: rank for name, rank in ranks.items() if "logits_to_keep" in name}
    known = {tokens, mask, positions, *token_types, *row_counts}
    presents = [value for value in model.graph.outputs if value.name != logits]
    first_states = _first_states(inputs, given, presents)
    caches, others = _caches_of(
        [
            value
            for name, value in inputs.items()
            if (name in free and name not in known) or name in first_states
        ],
        presents,
    )
    others = [name for name in others if name_key(name) not in set(map(name_key, carried))]
    if others:
        raise _refused(f"nothing gives the input {listed(others, 4)}", _EXAMPLE)
    place = inputs[positions].shape if positions is not None else None
    rank = 2 if place is None else len(place)
    return Ports(tokens, logits, mask, positions, rank, caches, token_types, row_counts)


def _tokens_of(inputs: Mapping[str, ir.Value]) -> str:
    """Return the input of tokens: integers of rank 2; raises UsageError E801 without one."""
    integers = [
        name
        for name, value in inputs.items()
        if value.dtype in (ir.DataType.INT64, ir.DataType.INT32)
        and value.shape is not None
        and len(value.shape) == 2
        and not re.search(r"mask|position|token_type", name)
    ]
    named = [name for name in _TOKENS if name in integers]
    if not named and len(integers) != 1:
        if not integers:
            why = "none of its inputs holds token numbers, int64[B,S] or int32[B,S]"
            raise _refused(why, "export the model with its embedding, so that it takes input_ids")
        why = f"any of these inputs may be the tokens: {listed(integers, 4)}"
        raise _refused(why, "call the input of tokens input_ids")
    return (named or integers)[0]


def _logits_of(outputs: Sequence[ir.Value]) -> str:
    """Return the output of logits, floats of rank 3: one called so, else the first.

    Raises UsageError E801 without one.
    """
    ranked = [
        value.name or ""
        for value in outputs
        if value.dtype is not None
        and value.dtype.is_floating_point()
        and value.shape is not None
        and len(value.shape) == 3
    ]
    named = [name for name in ranked if re.search(r"logits|scores", name)]
    if not ranked:
        raise _refused(
            "none of its outputs holds logits, float[B,S,V]", "export the model with its logits"
        )
    return (named or ranked)[0]


def _find(inputs: Mapping[str, ir.Value], pattern: str, tokens: str) -> str | None:
    """Return the first input of known shape whose name matches ``pattern``, but for ``tokens``."""
    for name, value in inputs.items():
        if name != tokens and re.search(pattern, name) and value.shape is not None:
            return name
    return None


def _first_states(
    inputs: Mapping[str, ir.Value], given: Collection[str], presents: Sequence[ir.Value]
) -> set[str]:
    """Return the inputs of ``given`` whose outputs in ``presents``, found by name, replace them.

    Raises UsageError E804 for an input whose output has more rows.
    """
    by_key = {name_key(value.name or ""): value for value in presents}
    found = set()
    for name in given:
        present = by_key.get(name_key(name)) if name in inputs else None
        cache = _cache(inputs[name], present) if present is not None else None
        if cache is not None and cache.kind == "grown":
            raise UsageError(
                "E804",
                f"the past {name!r} cannot be given",
                why=f"it grows with each token, by the output {cache.output!r}",
                fix="leave it out: the decoder computes it from the prompt",
            )
        if cache is not None:
            found.add(name)
    return found


def _caches_of(
    pasts: Sequence[ir.Value], presents: Sequence[ir.Value]
) -> tuple[tuple[Cache, ...], list[str]]:
    """Return the caches, and the names of the inputs of ``pasts`` that belong to no output.

    Names decide; the order does if no name fits and there are as many outputs as inputs.
    """
    by_key = {name_key(value.name or ""): value for value in presents}
    named = {past.name: by_key.get(name_key(past.name or "")) for past in pasts}
    if not any(named.values()) and len(pasts) == len(presents):
        named = dict(zip((past.name for past in pasts), presents, strict=True))
    caches, others = [], []
    for past in pasts:
        present = named[past.name]
        cache = None if present is None else _cache(past, present)
        if cache is None:
            others.append(past.name or "")
        else:
            caches.append(cache)
    return tuple(caches), others


def _cache(past: ir.Value, present: ir.Value) -> Cache | None:
    """Return the cache of the input ``past`` and the output ``present``; None if they differ in
    type, rank or more than one dim."""
    if past.shape is None or present.shape is None or past.dtype != present.dtype:
        return None
    if len(past.shape) != len(present.shape):
        return None
    pairs = list(zip(past.shape.dims, present.shape.dims, strict=True))
    grown = [
        axis
        for axis, (before, after) in enumerate(pairs)
        if isinstance(before, ir.SymbolicDim) and before != after and axis > 0
    ]
    name, output = past.name or "", present.name or ""
    if not grown:
        return Cache(name, output, "replaced")
    return Cache(name, output, "grown", grown[0]) if len(grown) == 1 else None


def _refused(why: str, fix: str) -> UsageError:
    """Return E801 for a model that is not a decoder."""
    return UsageError("E801", "the model is not a decoder of tokens", why=why, fix=fix)
