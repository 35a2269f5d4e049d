"""Decoders of two layers as PyTorch exports them: merged, then optimized, and the other way round.

``bench/export_decoders.py`` wrote the files (--width 16 --heads 2 --words 20 --positions 16);
metadata and long names were dropped from them.
"""

from pathlib import Path

import pytest

import smelt
from smelt.ir import scope
from smelt.merging.merge import Options, merged_decoders

MODELS = Path(__file__).parent / "models"
NAMES = ("decoder", "decoder_with_past")

OWN = 1.06
"""The most bytes of the merged weights, as a multiple of those of the decoder without past."""

NETWORKS = ["gpt2", "t5", pytest.param("whisper", marks=pytest.mark.slow)]


def paths(name):
    return tuple(MODELS / f"{name}_{side}.onnx" for side in NAMES)


@pytest.mark.parametrize("name", NETWORKS)
def test_branches_equal_their_sources_bit_by_bit(name):
    merged, facts = merged_decoders(paths(name), NAMES, Options(verified=True))
    assert [report.worst.error for report in facts.reports] == [0, 0]
    first = scope.weight_bytes(smelt.load(paths(name)[0]))
    assert scope.weight_bytes(merged) < OWN * first
    present = [value.name for value in merged.graph.outputs]
    assert present == [value.name for value in smelt.load(paths(name)[0]).graph.outputs]
    assert set(facts.not_computed) == {each for each in present if ".encoder." in each}


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_stay_shared_when_the_merged_model_is_optimized(name):
    merged = smelt.merge(*paths(name))
    optimized = smelt.optimize(merged)
    assert scope.weight_bytes(optimized) <= 1.02 * scope.weight_bytes(merged)
    optimized_first = [smelt.optimize(path) for path in paths(name)]
    other = smelt.merge(*map(smelt.load, optimized_first))
    assert scope.weight_bytes(other) <= 1.02 * scope.weight_bytes(merged)
