"""Make a model in which a bool input quantizes each candidate in each form.

One session then measures any choice of candidates and forms, without opening a model again. The
switch is an If between the value and its quantized and dequantized copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.cloning import clone_model
from smelt.precision.int8.bias import Means, corrected_bias
from smelt.precision.int8.candidates import (
    Candidate,
    Weight,
    operand_array,
    result_name,
    weight_of,
)
from smelt.precision.int8.linear import Codes, Parameters
from smelt.precision.int8.plan import Plan, make_plan
from smelt.precision.int8.writer import Format, Writer


@dataclass(frozen=True)
class Switched:
    """The ``model``, and its switches, which are bool inputs.

    ``switches`` maps (kind, name) to the name of the input. The kind is "result", "weight", "bias"
    for a corrected bias, or the form of an operand, "static" or "dynamic". The name is that of the
    value or node it quantizes.
    """

    model: ir.Model
    switches: Mapping[tuple[str, str], str]

    def settings(
        self, chosen: Mapping[Candidate, str], plan: Plan, *, corrects: bool = False
    ) -> dict[str, np.ndarray]:
        """Return the values of all switches for the ``chosen`` forms and their ``plan``.

        ``corrects``: weights with fewer bits have corrected biases, but in the form ``dynamic``.
        """
        on = {("result", name) for name in plan.results}
        for candidate, form in chosen.items():
            on |= {("weight", name) for name in candidate.nodes}
            on.add((form, candidate.source))
            if corrects and form != "dynamic":
                on |= {("bias", name) for name in candidate.nodes}
        return {name: np.asarray(key in on) for key, name in self.switches.items()}


def switched(
    source: ir.Model,
    candidates: Sequence[Candidate],
    parameters: Mapping[str, Parameters],
    format_: Format,
    given: Mapping[str, Codes],
    means: Means,
    *,
    links: bool,
) -> Switched:
    """Return a copy of ``source`` with a switch for each operand, result, weight and bias.

    ``given`` are codes of weights; see ``Writer``. ``means`` correct biases; see ``bias.py``.
    """
    model = clone_model(source)
    writer = Writer(model, parameters, format_, given)
    by_name = {result_name(node): node for node in model.graph}
    switches: dict[tuple[str, str], str] = {}

    def switch(b: Builder, kind: str, name: str, value: ir.Value, on: Branch) -> ir.Value:
        """Return the result of ``on`` if a new bool input is true, else ``value``.

        ``kind`` and ``name`` say what the input turns on; see ``Switched.settings``.
        """
        flag = b.input(f"switch_{len(switches)}", ir.DataType.BOOL, ir.Shape([]))
        switches[kind, name] = str(flag.name)
        return _choose(b, flag, on, value)

    every = {each: "static" for each in candidates if "static" in each.forms}
    _switch_results(writer, make_plan(model, every, frozenset(parameters), links=links), switch)
    for candidate in candidates:
        nodes = [by_name[name] for name in candidate.nodes]
        for node in nodes:
            _switch_weight(writer, node, candidate, means, switch)
        if candidate.source:
            _switch_operand(writer, nodes, candidate, switch)
    return Switched(model, switches)


Branch = Callable[[Builder], ir.Value]
"""Adds the nodes of a branch of an If, and returns its result."""
Switch = Callable[[Builder, str, str, ir.Value, Branch], ir.Value]
"""Adds a switch; ``switch`` in ``switched`` explains the parameters."""


def _choose(b: Builder, flag: ir.Value, on: Branch, off: ir.Value) -> ir.Value:
    """Return the result of an If: that of the branch ``on`` if ``flag`` is true, else ``off``."""

    def body(name: str, build: Branch) -> ir.Graph:
        """Return a branch that returns what ``build`` builds."""
        inner = b.in_body(ir.Graph([], [], nodes=[], name=b.free_name(name)))
        inner.graph.outputs.append(build(inner))
        return inner.graph

    then = body("quantized", on)
    other = body("float", lambda inner: inner.op("Identity", off))
    result = b.op("If", flag, then_branch=then, else_branch=other)
    result.type, result.shape = off.type, off.shape
    return result


def _switch_results(writer: Writer, plan: Plan, switch: Switch) -> None:
    """Put a switch behind each result of ``plan``, in which all candidates are static."""
    outputs = writer.model.graph.outputs
    for name in plan.results:
        value, scale = writer.values[name], plan.scale_of.get(name, name)
        uses = list(value.uses())
        chosen = switch(
            writer.after(value),
            "result",
            name,
            value,
            lambda b, value=value, scale=scale: writer.round_trip(b, value, scale),  # type: ignore[misc]
        )
        for use in uses:
            use.node.replace_input_with(use.idx, chosen)
        for index, output in enumerate(outputs):
            if output is value:
                outputs[index] = chosen


def _switch_weight(
    writer: Writer, node: ir.Node, candidate: Candidate, means: Means, switch: Switch
) -> None:
    """Put a switch between ``node`` and its weight, or behind a Gather that reads weight rows.

    If ``means`` has an entry for the product, a second switch chooses its corrected bias.
    """
    weight = weight_of(node, writer.constants)
    assert isinstance(weight, Weight)
    form = candidate.forms[0] if candidate.forms[0] != "dynamic" else candidate.forms[-1]
    codes, stem = writer.codes_of(node, weight, form, candidate.source), str(weight.value.name)
    if node.op_type == "Gather":
        value = node.outputs[0]
        uses = list(value.uses())
        chosen = switch(
            writer.after(value),
            "weight",
            result_name(node),
            value,
            lambda b: writer.dequantized_rows(b, node, codes, stem),
        )
        for use in uses:
            use.node.replace_input_with(use.idx, chosen)
        return
    operand, name = node.inputs[1], result_name(node)
    assert operand is not None
    if name in means:
        array = operand_array(weight, writer.constants)
        corrected = corrected_bias(node, array, codes, means[name], writer.constants)
        bias = node.inputs[2]
        if corrected is not None and bias is not None:
            constant = writer.constant(corrected, f"{bias.name}_corrected")
            chosen = switch(
                *(writer.before(node), "bias", name, bias), lambda b: b.op("Identity", constant)
            )
            node.replace_input_with(2, chosen)
    chosen = switch(
        writer.before(node),
        "weight",
        name,
        operand,
        lambda b: writer.dequantized(b, codes, stem),
    )
    node.replace_input_with(1, chosen)


def _switch_operand(
    writer: Writer, nodes: Sequence[ir.Node], candidate: Candidate, switch: Switch
) -> None:
    """Put a switch for each form, static and dynamic, between the operand and its products."""
    value = nodes[0].inputs[0]
    assert value is not None
    for form in ("static", "dynamic"):
        if form not in candidate.forms:
            continue
        operand = value
        value = switch(
            writer.before(nodes[0]),
            form,
            candidate.source,
            operand,
            lambda b, form=form, operand=operand: (  # type: ignore[misc]
                writer.round_trip(b, operand, candidate.source)
                if form == "static"
                else _dynamic_round_trip(b, operand)
            ),
        )
    for node in nodes:
        node.replace_input_with(0, value)


def _dynamic_round_trip(b: Builder, value: ir.Value) -> ir.Value:
    """Return ``value`` quantized by its own range and dequantized."""
    return b.op("DequantizeLinear", *b.ops("DynamicQuantizeLinear", value, outputs=3))
