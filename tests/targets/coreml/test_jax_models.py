"""Whole models of JAX: the package agrees at the sizes of each model, or the refusal has its code."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from targets.coreml.packages import outside
from targets.coreml.test_models import ERRORS, names_of
from whole_models.catalogue import MODELS
from whole_models.judging import arguments_of, traced

import smelt
from smelt.errors import SmeltError
from smelt.runtime.runner import open_runner
from smelt.targets.coreml import coreml

REFUSED = {"ppo": "E402"}
"""A model that draws random numbers with uint32."""


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
    if name in REFUSED:
        with pytest.raises(SmeltError) as caught:
            smelt.compile(source, target=coreml, **options)
        errors = getattr(caught.value, "errors", (caught.value,))
        assert {error.code for error in errors} == {REFUSED[name]}
        return
    run, package = open_runner(source), smelt.compile(source, target=coreml, **options).load()
    for seed, sizes in enumerate(model.sizes):
        given = jax.tree.leaves(arguments_of(model, np.random.default_rng(seed), sizes))
        inputs = [np.asarray(leaf) for leaf in given]
        for found, expected in zip(package(*inputs), run(*inputs), strict=True):
            wide = outside(expected).astype(np.float64)
            error = np.abs(outside(found) - wide).max() / np.abs(wide).max()
            assert error < ERRORS[precision]
