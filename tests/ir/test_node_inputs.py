"""Inputs that are replaced or removed, also of a node that is spread over devices."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir.node_inputs import detach, set_input


def node_of(*, sharded: bool) -> tuple[ir.Node, list[ir.Node]]:
    """Return a Clip of two values and an absent one, and the producers of the two."""
    first, last = (ir.node("Neg", [ir.Value(name=name)]) for name in ("a", "b"))
    clip = ir.node("Clip", [first.outputs[0], None, last.outputs[0]])
    if sharded:
        specs = tuple(ir.ShardingSpec(v) for v in (first.outputs[0], last.outputs[0]))
        clip.device_configurations = (ir.NodeDeviceConfiguration("two", specs),)
    return clip, [first, last]


def sharded_values(node: ir.Node) -> list[ir.Value | None]:
    return [spec.value for each in node.device_configurations for spec in each.sharding_specs]


@pytest.mark.parametrize("sharded", [False, True])
def test_a_node_without_inputs_is_read_by_no_value(sharded: bool) -> None:
    clip, producers = node_of(sharded=sharded)
    assert detach(clip) == producers
    assert list(clip.inputs) == [None] * 3
    assert not any(list(each.outputs[0].uses()) for each in producers)
    assert not sharded_values(clip)


@pytest.mark.parametrize("sharded", [False, True])
def test_an_input_that_is_replaced_is_no_longer_sharded(sharded: bool) -> None:
    clip, (first, last) = node_of(sharded=sharded)
    other = ir.Value(name="c")
    set_input(clip, 0, other)
    assert list(clip.inputs) == [other, None, last.outputs[0]]
    assert [use.node for use in other.uses()] == [clip]
    assert not list(first.outputs[0].uses())
    assert sharded_values(clip) == [last.outputs[0]] * sharded
