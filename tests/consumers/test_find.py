"""Consumers by name, version, and several at once."""

from __future__ import annotations

import pytest

from smelt.consumers.find import ANY, consumers, find_consumers
from smelt.consumers.known.onnxruntime import OPSETS
from smelt.errors import UsageError
from smelt.ir.opset import domains
from smelt.passes.pipeline import parse


@pytest.mark.parametrize("name", consumers())
def test_each_file_declares_operators_of_onnx_and_its_source(name) -> None:
    consumer = consumers()[name]
    listed = {key for key in (*(consumer.operators or ()), *consumer.refused) if "::" not in key}
    assert listed <= {op for op, owners in domains().items() if "" in owners}
    assert consumer.operators is not None or not (
        consumer.types or consumer.max_rank or consumer.fixed_sizes
    ), "limits of nodes need a table of operators"
    assert consumer.source
    assert consumer.summary
    parse(consumer.prefers)
    assert set(consumer.without) <= {str(step) for step in _all_steps()}


def _all_steps():
    def flat(steps):
        for step in steps:
            yield from flat(step.steps) if hasattr(step, "steps") else [step]

    return flat(parse("default"))


def test_a_version_has_the_limits_of_the_newest_release_up_to_it() -> None:
    assert find_consumers("onnxruntime>=1.20.2").highest_opset == OPSETS[1, 18][0]
    assert find_consumers("onnxruntime>=1.2").highest_opset == min(OPSETS.values())[0]
    newest = find_consumers("onnxruntime>=1.99")
    assert (newest.highest_opset, newest.consumers[0].ir_version) == max(OPSETS.values())


def test_several_consumers_take_what_each_of_them_takes() -> None:
    both = find_consumers("coreml-ep, nnapi")
    alone = [find_consumers(name) for name in ("coreml-ep", "nnapi")]
    assert both.kernels == alone[0].kernels & alone[1].kernels
    assert both.highest_opset == min(each.highest_opset for each in alone)
    assert "Gather" not in both.kernels
    assert "Gather" in alone[1].kernels


def test_any_is_at_opset_17_and_stands_alone() -> None:
    assert find_consumers(ANY).highest_opset == 17
    with pytest.raises(UsageError, match="together with openvino"):
        find_consumers(f"{ANY},openvino")


@pytest.mark.parametrize("name", ["opnvino", "openvino>=2026", "onnxruntime>1.18", "onnxruntime>="])
def test_unknown_names_and_versions_are_refused(name) -> None:
    with pytest.raises(UsageError) as caught:
        find_consumers(name)
    assert caught.value.code == "E612"
    assert caught.value.fix


def test_no_name_is_no_limit() -> None:
    assert not find_consumers("")
