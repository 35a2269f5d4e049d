"""Run a compiled decoder on the next tokens of all sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from smelt.decoding.network import Network
from smelt.decoding.ports import Cache, name_key
from smelt.decoding.state import ROWS_FIRST, Array, State

PROMPT_TOKENS = 256
"""The most tokens of a prompt in one call; more tokens would need more memory for their scores."""

Shape = tuple[int, ...]


class Call(Protocol):
    """A compiled model: ``inputs`` are the element types by name, ``outputs`` names, in order."""

    inputs: Mapping[str, np.dtype]
    outputs: Sequence[str]

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        """Return the outputs for one array per input."""

    def takes(self, shapes: Sequence[Sequence[Shape]]) -> bool:
        """Compile for inputs of all ``shapes``; False if this form cannot run some of them."""

    def begin(self, shapes: Sequence[Sequence[Shape]]) -> bool:
        """Begin with what ``takes`` does; True if the C compiler works meanwhile."""


class Program:
    """A decoder compiled for a number of tokens a call, and of sequences.

    ``run`` takes the next tokens of all sequences, adds them to the state, and returns the logits
    of the last one.
    """

    def __init__(self, network: Network, call: Call) -> None:
        self.network = network
        self.call = call

    def takes(
        self, tokens: int, state: State, lengths: Sequence[int], constants: Mapping[str, Array]
    ) -> bool:
        """Compile one program for ``tokens`` tokens or fewer after pasts of all ``lengths``.

        Without it, the program would be compiled again for each of the first lengths. False if it
        is compiled already, and for smaller sizes only.
        """
        return self.call.takes(self._shapes(tokens, state, lengths, constants))

    def begin(
        self, tokens: int, state: State, lengths: Sequence[int], constants: Mapping[str, Array]
    ) -> bool:
        """Begin with what ``takes`` does; True if the C compiler works meanwhile."""
        return self.call.begin(self._shapes(tokens, state, lengths, constants))

    def _shapes(
        self, tokens: int, state: State, lengths: Sequence[int], constants: Mapping[str, Array]
    ) -> list[list[Shape]]:
        """Return the shapes of all inputs for ``tokens`` tokens, after pasts of each of
        ``lengths``."""
        batch = len(state.mask)
        shapes = []
        for length in lengths:
            possible = State(state.capacity, np.ones((batch, length + tokens), bool), length)
            possible.caches = state.caches | {
                cache.input: self._past(cache, batch, length)
                for cache in self.network.ports.caches
                if cache.kind == "grown"
            }
            feeds = self._feeds(np.zeros((batch, tokens), np.int64), possible, constants)
            shapes.append([np.shape(feeds[name]) for name in self.call.inputs])
        return shapes

    def run(self, tokens: Array, state: State, constants: Mapping[str, Array]) -> Array:
        """Return float[B, V], the logits after ``tokens``, int64[B, S]; they join ``state``."""
        feeds = self._feeds(tokens, state, constants)
        results = self.call(*(feeds[name] for name in self.call.inputs))
        outputs = {
            name: np.asarray(result)
            for name, result in zip(self.call.outputs, results, strict=True)
        }
        logits = outputs.pop(self.network.ports.logits)[:, -1]
        self._keep(outputs, state)
        state.length += tokens.shape[1]
        return logits

    def _keep(self, outputs: Mapping[str, Array], state: State) -> None:
        """Store the pasts of the next call in ``state``."""
        for cache in self.network.ports.caches:
            if cache.input in self.network.appended:
                state.append(cache.input, outputs[cache.output])
            else:
                state.caches[cache.input] = outputs[cache.output]

    def _feeds(
        self, tokens: Array, state: State, constants: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the arrays of all inputs by name, in the element types of the model."""
        ports, count = self.network.ports, tokens.shape[1]
        feeds = dict(constants) | ports.fixed_arrays(tokens, rows=1)
        feeds[ports.tokens] = tokens
        if ports.mask is not None:
            feeds[ports.mask] = state.mask[:, : state.length + count]
        if ports.positions is not None:
            first_of = (0,) * (2 - ports.position_rank)
            feeds[ports.positions] = state.positions(count)[first_of]
        for cache in ports.caches:
            past = state.past(cache.input)
            if past is None:  # the first call, which may get the first states
                past = constants.get(cache.input, self._past(cache, len(tokens), 0))
            feeds[cache.input] = past
        for name in self.call.inputs:
            if name not in feeds:  # a past that the first call computed
                feeds[name] = state.caches[name]
        return {name: np.asarray(feeds[name], dtype) for name, dtype in self.call.inputs.items()}

    def _past(self, cache: Cache, batch: int, length: int) -> Array:
        """Return a past of ``length`` rows of zeros; they share their memory.

        The batch is the first axis, or the second one after the rows, whatever the name of its dim.
        """
        is_appended = cache.input in self.network.appended
        axis, batch_axis = (0, 1) if is_appended else (cache.axis, 0)
        batch_dim = self.network.dim(0)
        dims = [
            dim
            if isinstance(dim, int)
            else batch
            if place == batch_axis or dim == batch_dim
            else length
            for place, dim in enumerate(self.network.inputs[cache.input])
        ]
        if cache.kind == "grown":
            dims[axis] = length
        return np.broadcast_to(np.zeros((), self.call.inputs[cache.input]), dims)


class Programs(NamedTuple):
    """The programs of a prompt and of one token a step; they may be one."""

    prompt: Program
    step: Program


class FirstProgram(Program):
    """Computes the prompt for a decoder that takes one token a call.

    Its outputs are the pasts of ``step``: those that grow, and those that ``step`` only reads.
    """

    def __init__(self, network: Network, call: Call, step: Network) -> None:
        super().__init__(network, call)
        self._appended = step.appended
        self._pasts = {name_key(name): name for name in step.inputs}

    def _keep(self, outputs: Mapping[str, Array], state: State) -> None:
        """Store the pasts of ``step`` in ``state``."""
        for name, array in outputs.items():
            past = self._pasts.get(name_key(name))
            if past in self._appended:
                state.append(past, array.transpose(ROWS_FIRST))
            elif past is not None:
                state.caches[past] = array
