"""The compiled forms of a decoder: for the tokens of a prompt, and for one token a step."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.compiler import Source, compile_model, optimize
from smelt.decoding.appended import ROWS_FIRST, append_in_place
from smelt.decoding.causality import model_vocabulary, refuse_fixed_length, refuse_later_tokens
from smelt.decoding.last_row import keep_last_row
from smelt.decoding.ports import Cache, Ports, name_key, ports_of
from smelt.decoding.state import Array, State
from smelt.decoding.weights import feed
from smelt.frontends.onnx import load
from smelt.ir.cloning import clone_model
from smelt.ir.shapes.inference import ShapeInference
from smelt.targets.base import Artifact
from smelt.targets.host.runner import HostRunner

PROMPT_TOKENS = 256
"""The most tokens of a prompt in one call; more tokens would need more memory for their scores."""


@dataclass(frozen=True)
class Network:
    """An optimized decoder, and the meaning of its inputs and outputs.

    Tokens are below ``vocabulary``. ``appended`` are the past inputs whose outputs have the new
    rows alone, with rows first. ``notes`` say what became of quantized weights.
    """

    model: ir.Model
    ports: Ports
    vocabulary: int
    appended: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs besides the logits."""
        names = [value.name or "" for value in self.model.graph.outputs]
        return [name for name in names if name != self.ports.logits]

    def dim(self, axis: int) -> int | str:
        """Return the size of dim ``axis`` of the tokens, B or S, or its name if it is open."""
        tokens = next(v for v in self.model.graph.inputs if v.name == self.ports.tokens)
        assert tokens.shape is not None
        dim = tokens.shape[axis]
        return dim if isinstance(dim, int) else str(dim)


def network_of(
    source: Source,
    given: Mapping[str, Array],
    carried: Collection[str] = (),
    *,
    is_first: bool = False,
    weights: Mapping[str, ir.TensorProtocol] | None = None,
) -> Network:
    """Return ``source`` optimized, with caches that grow in place, and logits of the last token.

    ``given`` are the inputs that the caller gives, ``carried`` those that another model computes
    in the first call. ``is_first``: the model computes the first call, and has no past to read.
    ``weights`` replace those of the model. Raises UsageError E801 if ``source`` is not a decoder,
    E805 for weights that do not fit, and what ``smelt.load`` raises.
    """
    model = load(source, keep_opset=True) if not isinstance(source, ir.Model) else source
    notes: tuple[str, ...] = ()
    if weights is not None:
        model = clone_model(model)
        notes = tuple(feed(model, weights))
    model = optimize(model)
    ShapeInference(model).infer_model()
    for value in list(model.graph.inputs) if is_first else ():
        if not value.uses():  # the pasts of a merged decoder
            model.graph.inputs.remove(value)
    ports = ports_of(model, given, carried)
    if not ports.caches and not is_first:
        refuse_fixed_length(model, ports)
        refuse_later_tokens(model, ports, given)
    words = model_vocabulary(model, ports)
    keep_last_row(model, ports.logits)
    return Network(model, ports, words, append_in_place(model, ports), notes)


class Program:
    """A decoder compiled for ``tokens`` tokens a call, any number if None, and ``batch`` sequences.

    ``run`` takes the next tokens of all sequences, adds them to the state, and returns the logits
    of the last one.
    """

    def __init__(self, network: Network, batch: int, tokens: int | None, threads: int) -> None:
        """Compile the network; raises what ``smelt.compile`` raises."""
        sizes = {network.dim(0): batch}
        if tokens is not None:
            sizes[network.dim(1)] = tokens
        dims = {name: size for name, size in sizes.items() if isinstance(name, str)}
        self.network = network
        self.artifact: Artifact = compile_model(
            clone_model(network.model), target="host", dims=dims, engine="native", threads=threads
        )
        self._inputs = [value.name or "" for value in self.artifact.model.graph.inputs]
        self._outputs = [value.name or "" for value in self.artifact.model.graph.outputs]
        self._types = {
            value.name or "": value.dtype.numpy() if value.dtype is not None else None
            for value in self.artifact.model.graph.inputs
        }

    def compile_for(
        self, tokens: int, state: State, lengths: Sequence[int], constants: Mapping[str, Array]
    ) -> None:
        """Compile one program for ``tokens`` tokens or fewer after pasts of all ``lengths``.

        Without it, the program would be compiled again for each of the first lengths.
        """
        runner = self.artifact.opened()
        if not isinstance(runner, HostRunner) or runner.compiled is None:
            return
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
            shapes.append(tuple(np.shape(feeds[name]) for name in self._inputs))
        runner.compiled.compile_for(*shapes)

    def run(self, tokens: Array, state: State, constants: Mapping[str, Array]) -> Array:
        """Return float[B, V], the logits after ``tokens``, int64[B, S]; they join ``state``."""
        feeds = self._feeds(tokens, state, constants)
        results = self.artifact(*(feeds[name] for name in self._inputs))
        outputs = {
            name: np.asarray(result) for name, result in zip(self._outputs, results, strict=True)
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
        for name in self._inputs:
            if name not in feeds:  # a past that the first call computed
                feeds[name] = state.caches[name]
        return {name: np.asarray(feeds[name], dtype) for name, dtype in self._types.items()}

    def _past(self, cache: Cache, batch: int, length: int) -> Array:
        """Return a past of ``length`` rows of zeros; they share their memory.

        The batch is the first axis, or the second one after the rows, whatever the name of its dim.
        """
        is_appended = cache.input in self.network.appended
        axis, batch_axis = (0, 1) if is_appended else (cache.axis, 0)
        value = next(v for v in self.network.model.graph.inputs if v.name == cache.input)
        batch_dim = self.network.dim(0)
        dims = [
            dim
            if isinstance(dim, int)
            else batch
            if place == batch_axis or str(dim) == batch_dim
            else length
            for place, dim in enumerate(value.shape or ())
        ]
        if cache.kind == "grown":
            dims[axis] = length
        return np.broadcast_to(np.zeros((), self._types[cache.input]), dims)


class FirstProgram(Program):
    """Computes the prompt for a decoder that takes one token a call.

    Its outputs are the pasts of ``step``: those that grow, and those that ``step`` only reads.
    """

    def __init__(self, network: Network, step: Network, batch: int, threads: int) -> None:
        """Compile the network; raises what ``smelt.compile`` raises."""
        super().__init__(network, batch, None, threads)
        self._appended = step.appended
        self._pasts = {name_key(v.name or ""): v.name or "" for v in step.model.graph.inputs}

    def _keep(self, outputs: Mapping[str, Array], state: State) -> None:
        """Store the pasts of ``step`` in ``state``."""
        for name, array in outputs.items():
            past = self._pasts.get(name_key(name))
            if past in self._appended:
                state.append(past, array.transpose(ROWS_FIRST))
            elif past is not None:
                state.caches[past] = array
