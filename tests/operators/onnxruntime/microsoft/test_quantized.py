"""Operators between quantized numbers: our reference, C and host give what ONNX Runtime gives."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt import operators
from smelt.ir import text
from smelt.operators.onnxruntime.microsoft.declared import DOMAIN
from smelt.runtime.onnxruntime import OnnxRuntime

SCALES = (
    "s = Constant<value_float=0.02531>() z = Constant<value={k} {{{zero}}}>() "
    "t = Constant<value_float=0.02171>() u = Constant<value={k} {{{other}}}>() "
)
CASES = {
    "QLinearAdd": ("a, s, z, b, t, u, t, z", "smelt::QuantizedAdd"),
    "QLinearMul": ("a, s, z, b, t, u, t, u", "smelt::QuantizedMul"),
    "QLinearSigmoid": ("a, s, z, t, z", "smelt::Lookup"),
    "QLinearLeakyRelu": ("a, s, z, t, u", "smelt::Lookup"),
}
KINDS = {"uint8": (120, 90), "int8": (-8, 5)}


def graph_of(name: str, kind: str) -> str:
    given, _ = CASES[name]
    zero, other = KINDS[kind]
    ports = f"{kind}[2,33] a" + (f", {kind}[2,33] b" if "b" in given else "")
    scales = SCALES.format(k=kind, zero=zero, other=other)
    head = (
        f'<ir_version: 10, opset_import: ["" : 23, "{DOMAIN}" : 1]> g ({ports}) => ({kind}[2,33] y)'
    )
    return f"{head} {{ {scales} y = {DOMAIN}.{name}({given}) }}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_all_give_what_the_kernel_gives(name: str, kind: str) -> None:
    model = text.parse(graph_of(name, kind))
    rng, bounds = np.random.default_rng(0), np.iinfo(kind)
    shape = (len(model.graph.inputs), 2, 33)
    inputs = list(rng.integers(bounds.min, bounds.max + 1, shape).astype(kind))
    want = np.asarray(OnnxRuntime(model)(*inputs)[0])
    artifact = smelt.compile(text.parse(graph_of(name, kind)), target="c")
    assert [step.op for step in artifact.plan.steps.instructions] == [CASES[name][1]]
    found = {"c": artifact(*inputs)[0]}
    found["host"] = smelt.compile(text.parse(graph_of(name, kind)), target="host")(*inputs)[0]
    zero, other = (np.asarray(number, kind) for number in KINDS[kind])
    named = {"a": inputs[0], "b": inputs[-1], "z": zero, "u": other}
    named |= {"s": np.float32(0.02531), "t": np.float32(0.02171)}
    given = [named[word] for word in CASES[name][0].split(", ")]
    declared = operators.find(DOMAIN, name)
    assert declared is not None
    attributes = {attribute.name: attribute.default for attribute in declared.attributes}
    found["reference"] = declared.reference(given, attributes)[0]
    for who, got in found.items():
        steps = np.abs(np.asarray(got).astype(int) - want.astype(int))
        assert steps.max() <= 1, who
        assert steps.mean() < 0.05, who
