"""A model, a compiled folder or a function that can be run or timed, optionally for a target.

Opening has two steps: the interface gives the sizes; the sizes decide what a target compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import onnx_ir as ir

from smelt.check.comparison_side import side_of_saved
from smelt.check.user_function import AS_IS, Call, call
from smelt.compiler import compile_model, trace
from smelt.errors import InvalidModel, UsageError
from smelt.frontends.coreml.detect import is_core_ml
from smelt.runtime.complex_arrays import all_as_complex, on_complex
from smelt.runtime.fitting_sizes import run_fitting
from smelt.runtime.inputs import random_inputs
from smelt.runtime.interface import Interface, Value, interface_of
from smelt.runtime.named_inputs import Chosen, Given, MadeUp, Maker, choose_inputs
from smelt.runtime.runner import as_model, open_runner
from smelt.targets.base import Artifact
from smelt.targets.registry import find_target
from smelt.targets.saved import open_saved

Source: TypeAlias = "ir.Model | bytes | str | Path | Callable[..., Any]"
Run: TypeAlias = Callable[..., Sequence[Value]]
Open: TypeAlias = Callable[[Mapping[str, int]], Run]


@dataclass(frozen=True)
class Candidate:
    """A source to run; ``open`` makes it ready for given sizes, compiled if it has a target.

    ``interface`` and ``make_inputs`` are None for a function without specs; ``model`` is the model,
    or the trace of a function.
    """

    name: str
    open: Open
    interface: Interface | None = None
    make_inputs: Maker | None = None
    model: ir.Model | None = None

    def named(self, results: Sequence[Value]) -> dict[str, Value]:
        """Return ``results`` by output name, or as ``output_0``, ``output_1``, ... without names.

        An output that the interface declares complex is computed as an array with a last axis of
        (real, imaginary); it is returned as a complex array.
        """
        names = [port.name for port in self.interface.outputs] if self.interface else []
        if len(names) != len(results):
            names = [f"output_{index}" for index in range(len(results))]
        outputs = self.interface.outputs if self.interface else ()
        return dict(zip(names, all_as_complex(outputs, results), strict=True))


@dataclass(frozen=True)
class RunSettings:
    """Settings of ONNX Runtime: graph optimizations on or off, and the number of threads."""

    optimized: bool = False
    threads: int = 1


def candidate(
    source: Source,
    name: str,
    target: str | None = None,
    how: Call = AS_IS,
    dims: Mapping[str, int] | None = None,
    settings: RunSettings = RunSettings(),
) -> Candidate:
    """Return ``source`` as a Candidate, compiled for ``target`` if given.

    ``how`` has the arguments of a function. ``dims`` are the sizes of symbolic dims for which a
    target compiles. Raises UsageError E637 if a compiled folder comes with a target, E608 if a
    model comes with types or static values.
    """
    if callable(source) and not isinstance(source, ir.Model):
        return _of_function(source, name, target, how, dims, settings)
    if how.typed or how.static:
        raise UsageError(
            "E608",
            f"types of inputs and static values are given for {name}",
            why=f"they say how a JAX function is called, and {name} is a model",
            fix="leave out --static, and the type in --input",
        )
    if isinstance(source, str | Path) and Path(source).is_dir() and not is_core_ml(source):
        return _of_folder(source, name, target, settings)
    model = as_model(source)
    return _candidate_of_model(model, source, name, target, dims, settings)


def run(
    source: Source,
    inputs: Given | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    target: str | None = None,
    seed: int = 0,
) -> dict[str, Value]:
    """Run a model or a compiled folder once and return its outputs by name.

    With ``target``, the model is compiled first. ``inputs`` are arrays by name; a missing input is
    random, drawn with ``seed``. A symbolic dim has the size of the given arrays, else the one in
    ``dims``, else 1. Raises UsageError E632 for inputs that do not fit, E633 for an unknown dim.
    """
    given = {} if inputs is None else inputs
    if not isinstance(given, Mapping):
        raise UsageError(
            "E632",
            "the inputs are not a dict of arrays",
            fix="a dict: {'x': array}",
            why="the names say which input each array is for",
        )
    return run_once(candidate(source, "the source", target, dims=dims), given, dims, seed)[0]


def run_once(
    source: Candidate,
    given: Given,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[dict[str, Value], Chosen]:
    """Run ``source`` once; return the outputs by name and the inputs.

    Raises UsageError E634 for a function without specs, whose inputs have no names.
    """
    if source.interface is None:
        raise UsageError(
            "E634",
            f"{source.name} does not declare its inputs",
            fix="trace it with input specs first: smelt.trace(function, *specs)",
            why="a function without input specs has no names of inputs",
        )
    made_up = MadeUp("random", seed)
    interface, tried = source.interface, list[Chosen]()

    def choose(at: Mapping[str, int]) -> Chosen:
        """Return the inputs at the sizes ``at``: the given ones, and random ones for the others."""
        return choose_inputs(interface, given, source.make_inputs, at, made_up)

    def attempt(chosen: Chosen) -> Sequence[Value]:
        """Open ``source`` at the chosen sizes and run it once; note the attempt in ``tried``."""
        tried.append(chosen)
        say("opening")
        runner = source.open(chosen.sizes)
        say("running")
        return runner(*chosen.values)

    try:
        results, chosen = run_fitting(interface, choose, dims or {}, attempt, source.model)
    except InvalidModel as error:
        if error.code == "E321" and tried[0].sizes:
            ran = ", ".join(f"{name}={size}" for name, size in tried[0].sizes.items())
            error.fix = f"it ran at {ran}; choose other sizes with --dim, or give inputs"
        raise
    return source.named(results), chosen


def _candidate_of_model(
    model: ir.Model,
    source: Source,
    name: str,
    target: str | None,
    dims: Mapping[str, int] | None,
    settings: RunSettings,
) -> Candidate:
    """Return a candidate with the interface of ``model``; a target compiles ``source``.

    ``source`` may be the path from which ``model`` was read; the compiler then reads it again.
    """

    def open_(sizes: Mapping[str, int]) -> Run:
        """Return a function that runs the model at ``sizes``, compiled for the target if there is
        one.
        """
        if target is None:
            return _open_model(model, settings)
        return _compiled(source, target, sizes, dims, settings)

    make = _maker(model)
    return Candidate(name, open_, interface_of(model), make, model)


def _maker(model: ir.Model) -> Maker:
    """Return the function that makes inputs of ``model`` from dim sizes, a seed and a mode."""
    return lambda sizes, seed, mode: random_inputs(model, sizes, seed, mode)


def _open_model(model: ir.Model, settings: RunSettings) -> Run:
    """Return a function that runs ``model`` in ONNX Runtime with ``settings``."""
    return open_runner(model, optimized=settings.optimized, threads=settings.threads)


def _compiled(
    source: Source,
    target: str,
    sizes: Mapping[str, int],
    dims: Mapping[str, int] | None,
    settings: RunSettings,
) -> Run:
    """Compile ``source`` for ``target`` and return its runner.

    A target with dynamic dims fixes only the sizes in ``dims``; any other target needs a size for
    each dim, and takes those of the inputs, ``sizes``.
    """
    chosen = find_target(target)
    bound = dict(dims or {}) if chosen.limits.dynamic_dims else dict(sizes)
    artifact = compile_model(source, target=chosen, dims=bound or None)
    return _with_settings(artifact, artifact.opened(), settings)


def _with_settings(artifact: Artifact, runner: Run, settings: RunSettings) -> Run:
    """Return ``runner``, opened again with ``settings`` if it is a session of ONNX Runtime.

    An artifact opens sessions with the default settings, which suit verification, not timing.
    """
    if getattr(runner, "name", "") == "onnxruntime" and settings != RunSettings():
        return _open_model(artifact.model, settings)
    return runner


def _of_folder(
    folder: str | Path, name: str, target: str | None, settings: RunSettings
) -> Candidate:
    """Return a compiled folder as a candidate; raises UsageError E637 if a target is given."""
    saved = open_saved(folder)
    if target is not None:
        raise UsageError(
            "E637",
            f"{str(folder)!r} is compiled for {saved.target!r} already",
            fix="leave out the target, or give the model to compile it again",
            why="a folder is compiled for one target",
        )
    if saved.model is not None:
        return _candidate_of_model(saved.model, saved.model, name, None, None, settings)
    side = side_of_saved(saved, name)
    return Candidate(name, lambda sizes: side.run, saved.interface, side.make_inputs)


def _of_function(
    function: Callable[..., Any],
    name: str,
    target: str | None,
    how: Call,
    dims: Mapping[str, int] | None,
    settings: RunSettings,
) -> Candidate:
    """Return a function as a candidate.

    With types of inputs, the function is traced, so that the candidate has an interface and random
    inputs. JAX still runs the function itself, unless a target compiles the trace. Raises
    UsageError E608 for a target without types of inputs.
    """
    run = partial(call, function if how == AS_IS else how.bound(function))
    if not how.typed:
        if target is not None:
            raise UsageError(
                "E608",
                f"{name} is a function, and --target compiles models",
                why="its inputs have no types",
                fix="give the type of each argument: --input 'f32[B,4]'",
            )
        return Candidate(name, lambda sizes: run)
    model = trace(
        function, *how.positional, kwargs=dict(how.keyword), static=how.static, x64=how.x64
    )
    if target is None:
        interface = interface_of(model)
        return Candidate(name, lambda sizes: on_complex(interface, run), interface, _maker(model))
    return _candidate_of_model(model, model, name, target, dims, settings)
