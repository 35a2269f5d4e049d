"""Compile an optimized decoder for a number of sequences: for prompts, and for one token a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx_ir as ir

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
from smelt.program.specialize import is_static
from smelt.runtime.jit.library_call import LibraryCall
from smelt.targets.base import Artifact
from smelt.targets.host.compiled import Compiled
from smelt.targets.host.runner import HostRunner
from smelt.targets.host.static_programs import library_of
from smelt.targets.host.stored import TakenProgram, taken_program


class ArtifactCall:
    """A model compiled for the target ``host``; NumPy runs what cannot be compiled."""

    def __init__(self, model: ir.Model, compile_it: Callable[[], Artifact]) -> None:
        """Keep ``compile_it``, which compiles ``model``; it is called when sizes are known."""
        self._compile_it = compile_it
        graph = model.graph
        self.inputs: Mapping[str, np.dtype] = {
            value.name or "": np.dtype(value.dtype.numpy())
            for value in graph.inputs
            if value.dtype is not None
        }
        self.outputs: Sequence[str] = [value.name or "" for value in graph.outputs]
        self._calls: list[LibraryCall] = []

    @cached_property
    def _artifact(self) -> Artifact:
        """The artifact of ``host``."""
        return self._compile_it()

    @cached_property
    def _compiled(self) -> Compiled | None:
        """The compiled form; None if NumPy runs the model in parts."""
        runner = self._artifact.opened()
        compiled = runner.compiled if isinstance(runner, HostRunner) else None
        if compiled is not None and compiled.open_sizes is None:
            compiled.keep = self._calls.append
        return compiled

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        """Return the outputs."""
        return [np.asarray(result) for result in self._artifact(*arrays)]

    def takes(self, shapes: Sequence[Sequence[Shape]]) -> bool:
        """Compile one program for all ``shapes``."""
        compiled = self._compiled
        if compiled is not None and is_static(compiled.program):
            compiled.caller(tuple(shapes[0]))
        elif compiled is not None:
            compiled.compile_for(*map(tuple, shapes))
        return True

    def begin(self, shapes: Sequence[Sequence[Shape]]) -> bool:
        """Write the program for all ``shapes``; True if the C compiler works on it in a thread."""
        open_sizes = None if self._compiled is None else self._compiled.open_sizes
        if open_sizes is None:
            return False
        for each in shapes:
            open_sizes.note(tuple(each), known=True)
        return open_sizes.begin(library_of)

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
        """Return ``each`` for ``tokens`` tokens a call, any number if None; not compiled yet."""
        sizes = {each.network.dim(0): batch}
        if tokens is not None:
            sizes[each.network.dim(1)] = tokens
        dims = {name: size for name, size in sizes.items() if isinstance(name, str)}

        def compile_it() -> Artifact:
            """Return the artifact of ``host``."""
            model, threads = clone_model(each.model), self._threads
            return compile_model(model, target="host", dims=dims, engine="native", threads=threads)

        return ArtifactCall(each.model, compile_it)
