"""Compare a merged model with the models it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.comparison_side import ComparisonSide
from smelt.check.verification import Report
from smelt.check.verify import verify
from smelt.ir.symbolic_dims.dims import size_of
from smelt.runtime.interface import Interface, Port, Value, interface_of
from smelt.runtime.runner import Runner, open_runner

Known: TypeAlias = Mapping[str, Value]


def verify_branches(
    merged: ir.Model,
    sources: Sequence[tuple[str, ir.Model]],
    condition: str,
    dims: Dims | None = None,
) -> list[Report]:
    """Run each source and its branch of ``merged`` on the same random inputs; return the reports.

    ``sources`` are the decoder without past and the one with past, with their names. The merged
    model runs as it is: inputs that the source lacks are zeros, as loaders of such files pass them.
    Outputs that the source lacks are not compared. ``dims`` may hold dims of either source.
    """
    runner = open_runner(merged)
    reports: list[Report] = []
    dims_of_each = own_dims(dims, [source for _, source in sources])
    for is_cached, (name, source) in enumerate(sources):
        fixed: Known = {condition: np.array([bool(is_cached)])}
        side = part_of(runner, interface_of(source), fixed)
        reports.append(verify(source, side, dims=dims_of_each[is_cached], names=(name, side.name)))
    return reports


def verify_chain(
    joined: ir.Model,
    sources: Sequence[tuple[str, ir.Model]],
    pairs: Mapping[str, str],
    renamed: Mapping[str, str],
    dims: Dims | None = None,
) -> Report:
    """Run two models one after the other, and ``joined``, on the same random inputs.

    ``pairs`` maps outputs of the first model to inputs of the second; ``renamed`` maps inputs and
    outputs of the second to their names in ``joined``.
    """
    runners = [open_runner(model) for _, model in sources]
    interface = interface_of(joined)
    source_of = {into: out for out, into in pairs.items()}

    def run(*values: Value) -> Sequence[Value]:
        """Return the outputs that the joined model must have, by its outputs' order.

        The first model runs on its inputs, then the second one on results of the first and on its
        own inputs, which may have other names in the joined model.
        """
        given = dict(zip((port.name for port in interface.inputs), values, strict=True))
        first = {**given, **_by_name(runners[0], given)}
        own = {
            port.name: first[source_of[port.name]]
            if port.name in source_of
            else given[renamed.get(port.name, port.name)]
            for port in runners[1].interface.inputs
        }
        second = _by_name(runners[1], own)
        results = {**first, **{renamed.get(name, name): v for name, v in second.items()}}
        return [results[port.name] for port in interface.outputs]

    name = " and ".join(name for name, _ in sources)
    return verify(ComparisonSide(name, run), joined, dims=dims, names=(name, "the joined model"))


def _by_name(runner: Runner, given: Known) -> dict[str, Value]:
    """Return the outputs of ``runner`` by name, for the inputs that ``given`` has by name."""
    results = runner(*(given[port.name] for port in runner.interface.inputs))
    return dict(zip((port.name for port in runner.interface.outputs), results, strict=True))


def own_dims(dims: Dims | None, models: Sequence[ir.Model]) -> list[Dims | None]:
    """Return ``dims`` restricted to the symbols of each model, in order.

    A name that no model has goes to the first model, so that its comparison raises E633.
    """
    symbols = [set(interface_of(model).symbols()) for model in models]
    unknown = (dims or {}).keys() - set().union(*symbols)
    symbols[0] |= unknown
    each = [{name: n for name, n in (dims or {}).items() if name in own} for own in symbols]
    return [own or None for own in each]


def part_of(runner: Runner, source: Interface, fixed: Known) -> ComparisonSide:
    """Return ``runner`` as a side of a comparison that has the inputs and outputs of ``source``.

    Inputs beyond these are those of ``fixed``, else zeros.
    """
    whole = runner.interface
    ports = {port.name: port for port in whole.inputs}
    results = [port.name for port in whole.outputs]
    interface = Interface(
        tuple(ports[port.name] for port in source.inputs if port.name in ports),
        tuple(port for out in source.outputs for port in whole.outputs if port.name == out.name),
    )

    def run(*values: Value) -> Sequence[Value]:
        """Run the merged model on the inputs of ``source``, others filled in; return the outputs of
        ``source``.
        """
        given = dict(zip((port.name for port in source.inputs), values, strict=True))
        sizes = _sizes(interface.inputs, given)
        fed = [_value_for(port, {**given, **fixed}, sizes) for port in whole.inputs]
        outputs = dict(zip(results, runner(*fed), strict=True))
        return [outputs[port.name] for port in source.outputs]

    return ComparisonSide("the merged model", run, interface)


def _sizes(ports: Sequence[Port], given: Known) -> dict[str, int]:
    """Return the size of each symbolic dim of ``ports``, read off the arrays of ``given``."""
    sizes: dict[str, int] = {}
    for port in ports:
        array = given[port.name]
        if isinstance(array, np.ndarray):
            pairs = zip(port.shape or (), array.shape, strict=False)
            sizes |= {d.value: n for d, n in pairs if isinstance(d, ir.SymbolicDim) and d.value}
    return sizes


def _value_for(port: Port, given: Known, sizes: Mapping[str, int]) -> Value:
    """Return the value to pass for ``port``: that of ``given``, else zeros of its shape.

    None lets the runtime use the default of the input. A dim without a size in ``sizes`` is 0.
    """
    if port.name in given or port.default is not None or port.dtype is None:
        return given.get(port.name)
    known = (size_of(dim, sizes) for dim in port.shape or ())
    shape = [dim if isinstance(dim, int) else 0 for dim in known]
    return np.zeros(shape, port.dtype.numpy())
