"""Write one function for all sizes, or one function with fixed shapes for each listed size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import onnx_ir as ir

from smelt.ir.bounds import bounds_of, note_bounds
from smelt.ir.cloning import clone_model
from smelt.passes import pipeline as language
from smelt.passes.base import PassContext
from smelt.passes.interface.materialize_symbolic_dims import bind_dims
from smelt.passes.run import run
from smelt.runtime.fold import evaluator
from smelt.targets.coreml.emission import Emission, emit_function
from smelt.targets.coreml.interface import MOST_SHAPES, Sizes
from smelt.targets.coreml.options import Options, refused

FOLD = "fixpoint(const-elimination,noop-elimination,dead-code-elimination){max=64}"
"""The passes that fold values which fixed sizes make constant."""


def emit_functions(model: ir.Model, options: Options) -> dict[str, Emission]:
    """Return the functions of ``model`` by name: ``main``, or one for each combination of sizes."""
    if options.functions == "one":
        return {"main": emit_function(model, options)}
    emissions = {}
    for sizes in combinations(model, options):
        fixed = clone_model(model)
        # Bounds are allowed for dims of the interface only, and fixed dims are no longer there.
        note_bounds(fixed, _others(model, sizes), 1, checked=True)
        bind_dims(fixed, sizes)
        cx = PassContext.of(fixed, evaluator(fixed))
        run(cx, language.parse(FOLD))
        emissions[name_of(sizes)] = emit_function(fixed, _without(options, sizes))
    return emissions


def _others(model: ir.Model, sizes: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the bounds of the dims that ``sizes`` does not fix."""
    return {name: ends for name, ends in bounds_of(model.graph).items() if name not in sizes}


def _without(options: Options, sizes: Mapping[str, int]) -> Options:
    """Return ``options`` for the function in which ``sizes`` are fixed: defaults of other dims
    only.
    """
    from dataclasses import replace

    default = ";".join(
        f"{name}={chosen[0]}" for name, chosen in options.default_sizes.items() if name not in sizes
    )
    return replace(options, sizes="", default=default, functions="one")


def combinations(model: ir.Model, options: Options) -> Iterator[dict[str, int]]:
    """Yield the listed sizes in all combinations; raises UsageError E660 for too many."""
    listed = options.listed_sizes
    Sizes.of(bounds_of(model.graph), options)  # raises for sizes outside their bounds
    products = list(itertools.product(*listed.values()))
    if len(products) > MOST_SHAPES:
        raise refused("functions=fixed", f"{len(products)} functions; at most {MOST_SHAPES}")
    for sizes in products:
        yield dict(zip(listed, sizes, strict=True))


def name_of(sizes: Mapping[str, int]) -> str:
    """Return the name of the function for ``sizes``, such as ``B_4_S_64``."""
    parts = [f"{name}_{size}" for name, size in sizes.items()]
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in "_".join(parts))


def default_function(model: ir.Model, options: Options) -> str:
    """Return the name of the function that runs unless another is chosen."""
    if options.functions == "one":
        return "main"
    defaults = Sizes.of(bounds_of(model.graph), options).defaults
    return name_of({name: defaults[name] for name in options.listed_sizes})
