"""The calls of a decoder's programs in C: what each input, output and size of a run is.

A cache whose program returns new rows is read and extended in place. Any other cache has two
buffers: a call reads one, writes the other, and the decoder turns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smelt.decoding.network import Network
from smelt.decoding.ports import Cache
from smelt.decoding.standalone.plans import Part, size_names, unwritten
from smelt.decoding.standalone.state import Fill, State
from smelt.ir.symbolic_dims.dims import size_of
from smelt.native.types import C_TYPES
from smelt.program.instruction import Slot
from smelt.runtime.interface import interface_of

SAMPLES = ((1, 0), (1, 5), (2, 3))
"""Numbers of new and of earlier tokens with which shapes are compared."""


@dataclass(frozen=True)
class Call:
    """A program of the decoder: C expressions of its inputs, outputs and sizes.

    ``at`` is the memory of the decoder, ``count`` the number of new tokens, ``length`` that of
    earlier ones. ``token_type`` and ``position_type`` are C types, the latter None without an input
    of positions.
    """

    word: str
    most: int
    inputs: Sequence[str]
    outputs: Sequence[str]
    sizes: Sequence[str]
    token_type: str
    position_type: str | None


def calls_of(network: Network, parts: Sequence[Part], context: int) -> tuple[State, list[Call]]:
    """Return the memory of a decoder, and the calls of its programs.

    Raises UsageError E808 for an input whose size or type the loop cannot give.
    """
    state = State(max(part.plan.memory.alignment for part in parts))
    calls = [_call(network, part, parts[0].most, context, state) for part in parts]
    state.region("seen", network.vocabulary)
    state.region("order", 4 * network.vocabulary)
    state.region("scores", 4 * network.vocabulary)
    state.region("chances", 8 * network.vocabulary)
    state.region("history", 4 * context)
    state.region("arena", max(part.plan.memory.arena_bytes for part in parts))
    return state, calls


def _call(network: Network, part: Part, most: int, context: int, state: State) -> Call:
    """Return the call of ``part``, with at most ``most`` new tokens in any call."""
    program, ports = part.plan.steps, network.ports
    slots = {program.slots[slot].name: program.slots[slot] for slot in program.inputs}
    _check_shapes(network, part)
    caches = {cache.input for cache in ports.caches}
    texts = {
        name: _given(network, name, slot, most, context, state)
        for name, slot in slots.items()
        if name not in caches
    }
    results = {ports.logits: f"at + {state.region('logits', 4 * network.vocabulary)}"}
    for cache in ports.caches:
        texts[cache.input], results[cache.output] = _buffers(
            network, cache, slots[cache.input], context, state
        )
    names = size_names(network)
    sizes = [names.get(each.symbol or each.name, "") for each in program.input_sizes]
    if program.returned_sizes or "" in sizes:
        raise unwritten("a size of its inputs or outputs depends on more than numbers of tokens")
    outputs = [value.name or "" for value in part.plan.model.graph.outputs]
    slot = program.slots[program.outputs[outputs.index(ports.logits)]]
    if slot.most_bytes != 4 * network.vocabulary:
        raise unwritten(f"its output {ports.logits!r} has more than the logits of one token")
    position = None if ports.positions is None else slots[ports.positions]
    return Call(
        part.word,
        part.most,
        [texts[value.name or ""] for value in part.plan.model.graph.inputs],
        [results[name] for name in outputs],
        sizes,
        C_TYPES[slots[ports.tokens].dtype].name,
        None if position is None else C_TYPES[position.dtype].name,
    )


def _check_shapes(network: Network, part: Part) -> None:
    """Raise UsageError E808 unless all inputs have the shapes that the loop gives them."""
    names = size_names(network)
    for count, length in SAMPLES:
        if count > part.most or (length and not network.ports.caches):
            continue
        numbers = {"1": 1, "count": count, "length": length, "length + count": length + count}
        sizes = {name: numbers[text] for name, text in names.items()}
        for port in interface_of(part.plan.model).inputs:
            shape = [size_of(dim, sizes) for dim in port.shape or ()]
            expected = _expected(network, port.name, shape, count, length)
            if shape != list(expected):
                why = f"its input {port.name!r} is {port}, and {count} tokens after {length} give"
                raise unwritten(f"{why} {expected}")


def _expected(
    network: Network, name: str, shape: Sequence[object], count: int, length: int
) -> Sequence[object]:
    """Return the shape that the loop gives to the input ``name``, whose model has ``shape``."""
    ports = network.ports
    if name == ports.tokens:
        return [1, count]
    if name == ports.mask:
        return [1, length + count]
    if name == ports.positions:
        return [1, count][2 - ports.position_rank :]
    if name in ports.token_types:
        return [1, count][: ports.token_types[name]]
    if name in ports.row_counts:
        return [1] * ports.row_counts[name]
    cache = next(each for each in ports.caches if each.input == name)
    expected: list[object] = [dim if isinstance(dim, int) else None for dim in shape]
    if cache.kind == "grown":
        expected[0 if name in network.appended else cache.axis] = length
    return expected


def _given(network: Network, name: str, slot: Slot, most: int, context: int, state: State) -> str:
    """Return the C expression of an input that is no cache; raises UsageError E808 for a mask of
    codes such as float16."""
    ports, stored = network.ports, C_TYPES[slot.dtype]
    if name == ports.tokens:
        return f"at + {state.region('tokens', stored.size * most)}"
    if name == ports.positions:
        return f"at + {state.region('positions', stored.size * most)}"
    value, count = (1, context) if name == ports.mask else (0, most)
    value = 1 if name in ports.row_counts else value
    if stored.computed is not None:
        raise unwritten(f"its input {name!r} has elements of {slot.dtype.name.lower()}")
    key = f"{name} {stored.name}"
    offset = state.region(key, stored.size * count)
    state.fills[key] = Fill(offset, stored.name, value, count)
    return f"at + {offset}"


def _buffers(
    network: Network, cache: Cache, slot: Slot, context: int, state: State
) -> tuple[str, str]:
    """Return the C expressions of a cache as an input and as an output."""
    most = slot.most_bytes
    first = state.region(cache.input, most)
    if cache.kind == "replaced":
        state.zeros[cache.input] = first, most
    if cache.input in network.appended:
        row = most // context
        return f"at + {first}", f"at + {first} + length * {row}"
    second = state.region(f"second {cache.input}", most)
    return (
        f"at + (decoder->turn ? {second} : {first})",
        f"at + (decoder->turn ? {first} : {second})",
    )
