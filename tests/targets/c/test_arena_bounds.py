"""The arenas of known networks are at most as large as the best order needs with results in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import onnx
import pytest
from best_order import best_order_bytes
from programs import Draft

import smelt
from bench.networks import LIGHT, NETWORKS, light
from smelt.program.memory import MemoryPlan, aligned
from smelt.targets.base import Artifact, Plan
from smelt.targets.c import c

QUICK = ("tiny_mlp", "mnist_cnn", "dscnn_kws", "resnet8", "tiny_transformer", "mbv2_035_96")
SLOW = ("mbv2_100_224", *LIGHT)
PADDED_ROWS = {"vgg19": 4 * 64 * 3 * 226}
"""Bytes above the bound: three padded rows of 64 channels beside the largest image and result."""


def _planned(model: onnx.ModelProto) -> MemoryPlan:
    """Return the plan of the target without writing files, because weights have up to 550 MB."""

    def nothing(plan: Plan) -> Artifact:
        return Artifact("c", plan.model, {}, plan, {}, None)

    return smelt.compile(model, target=replace(c, emit=nothing)).plan.memory


def _check(model: Callable[[], onnx.ModelProto], above: int = 0) -> None:
    plan = _planned(model())
    assert plan.arena_bytes <= aligned(best_order_bytes(plan.program), plan.alignment) + above


@pytest.mark.parametrize("name", QUICK)
def test_small_networks(name: str) -> None:
    _check(NETWORKS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_large_networks(name: str) -> None:
    model = NETWORKS[name] if name not in LIGHT else partial(light, name)
    _check(model, PADDED_ROWS.get(name, 0))


def test_the_bound_is_that_of_the_best_order() -> None:
    """Two branches of 100 numbers each end in 1 number, so the best order computes one after the
    other.
    """
    draft = Draft(4)
    wide = [draft.step(100, 0), draft.step(100, 0)]
    narrow = [draft.step(1, value) for value in wide]
    assert best_order_bytes(draft.done(draft.step(1, *narrow))) == 4 * 102


def test_the_bound_knows_results_in_place() -> None:
    draft = Draft(4)
    first = draft.step(100, 0)
    program = draft.done(draft.step(1, draft.step(100, first, op="Relu")))
    assert best_order_bytes(program) == 400
