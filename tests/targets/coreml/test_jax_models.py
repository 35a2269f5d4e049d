"""Whole models of JAX: the package agrees at the sizes of each model."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from targets.coreml.packages import outside
from targets.coreml.test_models import ERRORS, names_of
from whole_models.catalogue import MODELS
from whole_models.judging import arguments_of, traced

import smelt
from smelt.runtime.runner import open_runner
from smelt.targets.coreml import coreml


def bounds(model, names: set[str]) -> dict[str, tuple[int, int]]:
    """Return the least and the greatest size of each name."""
    found = {name: [sizes.get(name, 1) for sizes in model.sizes] for name in names}
    return {name: (min(sizes), max(sizes)) for name, sizes in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("precision", ERRORS)
@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_package_agrees(name: str, precision: str) -> None:
    model = MODELS[name]()
    source = traced(model)
    options = {"dims": bounds(model, names_of(source)), "precision": precision}
    options["float64"] = "float32" if model.x64 else "refused"
    run, package = open_runner(source), smelt.compile(source, target=coreml, **options).load()
    for seed, sizes in enumerate(model.sizes):
        given = jax.tree.leaves(arguments_of(model, np.random.default_rng(seed), sizes))
        inputs = [np.asarray(leaf) for leaf in given]
        for found, expected in zip(package(*inputs), run(*inputs), strict=True):
            wide = outside(expected).astype(np.float64)
            error = np.abs(outside(found) - wide).max() / np.abs(wide).max()
            assert error < ERRORS[precision]
