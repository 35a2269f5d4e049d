"""Compile an optimized decoder for a number of sequences: for prompts, and for one token a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from smelt.compiler import compile_model
from smelt.decoding.merged import parts_of
from smelt.decoding.optimized import Optimized, optimized
from smelt.decoding.program import FirstProgram, Program, Programs, Shape
from smelt.decoding.sources import Sources
from smelt.decoding.state import Array
from smelt.decoding.weights import read_weights
from smelt.errors import UsageError, did_you_mean, listed
from smelt.frontends.onnx import load
from smelt.frontends.onnx.mapped import WEIGHT_FILES
from smelt.ir.cloning import clone_model
from smelt.runtime.jit.library_call import LibraryCall
from smelt.targets.base import Artifact
from smelt.targets.host.compiled import Compiled
from smelt.targets.host.runner import HostRunner
from smelt.targets.host.stored import TakenProgram, taken_program


class ArtifactCall:
    """A model compiled for the target ``host``; NumPy runs what cannot be compiled."""

    def __init__(self, artifact: Artifact) -> None:
        """Build the runner; its programs are compiled when sizes are known."""
        self._artifact = artifact
        graph = artifact.model.graph
        self.inputs: Mapping[str, np.dtype] = {
            value.name or "": np.dtype(value.dtype.numpy())
            for value in graph.inputs
            if value.dtype is not None
        }
        self.outputs: Sequence[str] = [value.name or "" for value in graph.outputs]
        runner = artifact.opened()
        self._compiled: Compiled | None = (
            runner.compiled if isinstance(runner, HostRunner) else None
        )
        self._calls: list[LibraryCall] = []
        self._is_static = self._compiled is not None and self._compiled.open_sizes is None
        if self._compiled is not None and self._is_static:
            self._compiled.keep = self._calls.append

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        """Return the outputs."""
        return [np.asarray(result) for result in self._artifact(*arrays)]

    def takes(self, shapes: Sequence[Sequence[Shape]]) -> bool:
        """Compile one program for all ``shapes``."""
        if self._compiled is not None and not self._is_static:
            self._compiled.compile_for(*map(tuple, shapes))
        elif self._compiled is not None:
            self._compiled.caller(tuple(shapes[0]))
        return True

    def taken(self) -> TakenProgram | None:
        """Return the compiled program in a form to store; None if NumPy runs the model."""
        if self._compiled is None:
            return None
        call = self._calls[0] if self._calls else self._compiled.open_caller
        return taken_program(self._artifact.model, call)


class Models:
    """The optimized models of a decoder: a step, and the model that reads the prompt, if any.

    ``files`` are the files with external data of both.
    """

    def __init__(self, sources: Sources) -> None:
        """Read and optimize the models.

        Raises UsageError E801 for a model that is not a decoder, E804 for arrays that it does not
        take, E805 for weights that do not fit, and what ``smelt.load`` raises.
        """
        tensors = None if sources.weights is None else read_weights(sources.weights)
        loaded = load(sources.model, keep_opset=True)
        step, prompt = parts_of(loaded)
        read = [loaded]
        if sources.first is not None:
            prompt = load(sources.first, keep_opset=True)
            read.append(prompt)
        given = sources.given
        self.first = (
            None if prompt is None else optimized(prompt, given, is_first=True, weights=tensors)
        )
        carried = () if self.first is None else self.first.network.carried
        self.step = optimized(step, given, carried, weights=tensors)
        self._refuse_unknown(given)
        self.files: list[Path] = [
            path for model in read for path in model.graph.meta.get(WEIGHT_FILES, ())
        ]
        self._threads = sources.threads

    def _refuse_unknown(self, given: Mapping[str, Array]) -> None:
        """Raise UsageError E804 for a name in ``given`` that is no input."""
        networks = [each.network for each in (self.step, self.first) if each is not None]
        known = {name for network in networks for name in network.inputs}
        for name in given:
            if name not in known:
                others = sorted(known)
                raise UsageError(
                    "E804",
                    f"the decoder has no input {name!r}",
                    why=f"its inputs are {listed(others, 6)}",
                    fix=did_you_mean(name, others, "leave it out"),
                )

    def programs(self, batch: int) -> Programs:
        """Return the programs of a prompt and of one token, for ``batch`` sequences.

        They are one program if the step takes a fixed number of tokens, or has no caches and so
        reads all tokens in each call.
        """
        step, network = self.step, self.step.network
        has_caches = bool(network.ports.caches)
        one = Program(network, self._call(step, batch, 1 if has_caches else None))
        prompt = one
        if self.first is not None:
            call = self._call(self.first, batch, None)
            prompt = FirstProgram(self.first.network, call, network)
        elif not isinstance(network.dim(1), int) and has_caches:
            prompt = Program(network, self._call(step, batch, None))
        return Programs(prompt, one)

    def _call(self, each: Optimized, batch: int, tokens: int | None) -> ArtifactCall:
        """Compile ``each`` for ``tokens`` tokens a call, any number if None."""
        sizes = {each.network.dim(0): batch}
        if tokens is not None:
            sizes[each.network.dim(1)] = tokens
        dims = {name: size for name, size in sizes.items() if isinstance(name, str)}
        artifact = compile_model(
            clone_model(each.model),
            target="host",
            dims=dims,
            engine="native",
            threads=self._threads,
        )
        return ArtifactCall(artifact)
