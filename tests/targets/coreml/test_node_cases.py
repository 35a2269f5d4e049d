"""The node tests of ONNX: each package agrees with the expected outputs, or the model is refused."""

from __future__ import annotations

from collections import Counter

import pytest
from sampling import is_tried
from targets.coreml.node_verdicts import cases, verdict

AGREEING = 1011
"""At least so many of the cases that are not written as functions agree."""
OPERATORS = 169
"""At least so many operators of ONNX are in a case that agrees."""


def found(names: list[str]) -> dict[str, str]:
    return {name: verdict(cases()[name]) for name in names}


def wrong(verdicts: dict[str, str]) -> dict[str, str]:
    return {
        name: each for name, each in verdicts.items() if not each.startswith(("agrees", "refused"))
    }


def test_a_sample():
    names = [name for name in cases() if "expanded" not in name and is_tried(name, 150)]
    verdicts = found(names)
    assert wrong(verdicts) == {}
    assert Counter(each.split()[0] for each in verdicts.values())["agrees"] > len(names) / 4


@pytest.mark.slow
def test_all():
    verdicts = found([name for name in cases() if "expanded" not in name])
    assert wrong(verdicts) == {}
    assert Counter(each.split()[0] for each in verdicts.values())["agrees"] >= AGREEING
    agreeing = [cases()[name].model.graph for name, each in verdicts.items() if each == "agrees"]
    assert len({n.op_type for graph in agreeing for n in graph.node if not n.domain}) >= OPERATORS
