"""ONNX's backend node cases keep their results through the default pipeline and each single
pass."""

from __future__ import annotations

import onnx
import pytest
from backend_cases import differences, node_cases, reference, tried_cases
from sampling import sampled

import smelt
from smelt.frontends.onnx import to_proto
from smelt.passes.registry import passes

AT_LEAST = 1490
"""Cases that ONNX Runtime runs unoptimized; fewer would mean that the test tests less."""


def failures(pipeline: str, shard: int, shards: int) -> tuple[int, list[str]]:
    """Return the number of compared cases, and the cases that changed."""
    compared, found = 0, []
    for case in tried_cases()[shard::shards]:
        expected = reference(case)
        if expected is None:
            continue
        compared += 1
        optimized: onnx.ModelProto = smelt.optimize(case.model, pipeline=pipeline)
        problem = differences(expected, case.run(optimized), rtol=1e-5)
        if problem:
            found.append(f"{case.name}: {problem}")
        if [i.name for i in optimized.graph.input] != [i.name for i in case.model.graph.input]:
            found.append(f"{case.name}: other inputs")
        if [o.name for o in optimized.graph.output] != [o.name for o in case.model.graph.output]:
            found.append(f"{case.name}: other outputs")
    return compared, found


@pytest.mark.parametrize("shard", sampled(range(8), 3))
def test_the_default_pipeline(shard: int) -> None:
    compared, found = failures("default", shard, 8)
    assert not found
    assert compared >= 0.7 * len(tried_cases()) / 8


@pytest.mark.slow
@pytest.mark.parametrize("name", [p.spelling for p in passes().values() if p.default])
def test_each_pass_alone(name: str) -> None:
    compared, found = failures(name, 0, 1)
    assert not found
    assert compared >= AT_LEAST


def test_loading_and_saving_alone() -> None:
    for case in node_cases()[::7]:
        expected = reference(case)
        if expected is not None:
            assert not differences(expected, case.run(to_proto(smelt.load(case.model))), 0), (
                case.name
            )
