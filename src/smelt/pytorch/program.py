"""A graph of ATen operators as compiled programs, one for each set of parameters."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from torch.fx import GraphModule

from smelt.compiler import compile_model
from smelt.errors import ErrorList, SmeltError, Unsupported
from smelt.ir.cloning import clone_model
from smelt.networks.tensors import array_of
from smelt.pytorch.agreement import check_agreement
from smelt.pytorch.export import Exported, export
from smelt.pytorch.settings import Settings
from smelt.targets.base import Artifact

MOST_SETS = 64
"""The most sets of parameters whose programs are kept, for example those of equal layers."""

MOST_CHANGES = 1
"""A parameter that changes more often is an argument of each run."""


class Program:
    """Computes ``graph``, which changes no argument, on a list of its arguments.

    Parameters and buffers of modules are constants of the compiled program. Their identity, version
    and address are compared in each call, and the program is compiled again if one has changed.
    Calls return what the graph returns. PyTorch runs graphs that cannot be compiled, and graphs
    whose first call gives other results than PyTorch, after a warning; with ``settings.fallback``
    off, these raise Unsupported or an ErrorList.
    """

    _boxed_call = True  # PyTorch then passes the arguments as one list

    def __init__(self, graph: GraphModule, settings: Settings) -> None:
        """Export the graph; it is compiled by the first call, which has the parameters."""
        self._graph = graph
        self._settings = settings
        self._sets: list[_Compiled] = []
        self._changes: dict[int, int] = {}
        self._exported: Exported | None = None
        try:
            self._exported = export(graph)
        except (Unsupported, ErrorList) as error:
            self._fall_back(error)

    def __call__(self, arguments: list[Any]) -> Sequence[Any]:
        """Return the results on ``arguments``, as PyTorch gives them for its own graphs."""
        if self._exported is None:
            results: Sequence[Any] = self._graph(*arguments)
            return results
        if self._exported.model is None:
            return [result.of(arguments, ()) for result in self._exported.results]
        for compiled in self._sets:
            if compiled.fits(arguments):
                return compiled(arguments)
        try:
            compiled = self._compile(self._exported, self._exported.model, arguments)
            results = compiled(arguments)
            if self._settings.verify:
                check_agreement(self._graph(*arguments), results)
            return results
        except (Unsupported, ErrorList) as error:
            self._exported = None
            self._fall_back(error)
            return self(arguments)

    def _compile(
        self, exported: Exported, exported_model: ir.Model, arguments: Sequence[Any]
    ) -> _Compiled:
        """Compile the graph with the parameters among ``arguments`` as constants.

        The program is put in front of the kept ones, and returned.
        """
        self._note_changes(arguments)
        constants = [
            position
            for position in exported.positions
            if self._settings.freeze
            and self._changes.get(position, 0) <= MOST_CHANGES
            and _is_parameter(arguments[position])
        ]
        model = clone_model(exported_model)
        _bind(model, exported.positions, {at: arguments[at] for at in constants})
        artifact = compile_model(
            model,
            target="host",
            pipeline=self._settings.pipeline,
            engine=self._settings.engine,
            threads=self._settings.threads,
        )
        passed = [at for at in exported.positions if at not in constants]
        kinds = [np.dtype(value.dtype.numpy()) for value in model.graph.inputs if value.dtype]
        states = [_State.of(at, arguments[at]) for at in constants]
        compiled = _Compiled(artifact, list(zip(passed, kinds, strict=True)), states, exported)
        self._sets.insert(0, compiled)
        del self._sets[MOST_SETS:]
        return compiled

    def _note_changes(self, arguments: Sequence[Any]) -> None:
        """Count the parameters that changed, and drop the programs that hold their old values."""
        kept = []
        for compiled in self._sets:
            changed = compiled.changed(arguments)
            for position in changed or ():
                self._changes[position] = self._changes.get(position, 0) + 1
            if not changed and not compiled.is_dead:
                kept.append(compiled)
        self._sets = kept

    def _fall_back(self, error: SmeltError) -> None:
        """Warn that PyTorch runs the graph; raises ``error`` if the settings forbid that."""
        if not self._settings.fallback:
            raise error
        nodes = sum(1 for node in self._graph.graph.nodes if node.op == "call_function")
        text = f"PyTorch runs a graph of {nodes} operators that smelt cannot compile: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


@dataclass(frozen=True)
class _State:
    """A parameter at ``position`` among the arguments, as it was compiled."""

    position: int
    parameter: Callable[[], Any]
    version: int
    address: int

    @staticmethod
    def of(position: int, parameter: Any) -> _State:
        """Return the present state of ``parameter``, which it does not keep alive."""
        return _State(position, weakref.ref(parameter), parameter._version, parameter.data_ptr())


class _Compiled:
    """The program of one set of parameters."""

    def __init__(
        self,
        artifact: Artifact,
        passed: Sequence[tuple[int, np.dtype]],
        states: Sequence[_State],
        exported: Exported,
    ) -> None:
        """Hold the program; ``passed`` are the positions and types of the arguments of each run."""
        self._run = artifact.opened()
        self._passed = passed
        self._states = [(s.position, s.parameter, s.version, s.address) for s in states]
        self._results = exported.results

    @property
    def is_dead(self) -> bool:
        """True if one of the parameters no longer exists."""
        return any(parameter() is None for _, parameter, _, _ in self._states)

    def fits(self, arguments: Sequence[Any]) -> bool:
        """True if the parameters among ``arguments`` are the compiled ones, unchanged."""
        for position, parameter, version, address in self._states:
            argument = arguments[position]
            if argument is not parameter() or argument._version != version:
                return False
            if argument.data_ptr() != address:
                return False
        return True

    def changed(self, arguments: Sequence[Any]) -> list[int]:
        """Return the positions of the compiled parameters whose values were replaced; none if
        another parameter stands in the place of one.
        """
        if any(arguments[at] is not parameter() for at, parameter, _, _ in self._states):
            return []
        return [
            at
            for at, _, version, address in self._states
            if (arguments[at]._version, arguments[at].data_ptr()) != (version, address)
        ]

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the results of a run."""
        inputs = [_array(arguments[position], kind) for position, kind in self._passed]
        values: Sequence[Any] = self._run(*inputs)
        return [result.of(arguments, values) for result in self._results]


def _is_parameter(argument: Any) -> bool:
    """True for a parameter or buffer of a module, unless its changes cannot be noticed."""
    if not isinstance(argument, torch.Tensor) or argument.is_inference():
        return False
    is_static = getattr(argument, "_dynamo_static_input_type", None) is not None
    return is_static or isinstance(argument, torch.nn.Parameter)


def _bind(model: ir.Model, positions: Sequence[int], constants: dict[int, torch.Tensor]) -> None:
    """Turn inputs of ``model`` into initializers with the values ``constants``.

    ``positions`` has the position of the argument of each input, by which ``constants`` is keyed.
    """
    graph = model.graph
    inputs = list(graph.inputs)
    graph.inputs.clear()
    for position, value in zip(positions, inputs, strict=True):
        if position not in constants:
            graph.inputs.append(value)
            continue
        tensor = ir.tensor(array_of(constants[position]), name=value.name)
        value.const_value, value.shape = tensor, ir.Shape(tensor.shape.numpy())
        graph.register_initializer(value)


def _array(argument: Any, kind: np.dtype) -> np.ndarray:
    """Return an argument as an array; a number becomes one of type ``kind``."""
    if isinstance(argument, torch.Tensor):
        return array_of(argument)
    return np.asarray(argument, kind)
