"""Plan the programs of a decoder for a target that writes C: a prompt, and one token a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir

from smelt.compiler import compile_model
from smelt.decoding.compiled import Models
from smelt.decoding.network import Network
from smelt.decoding.optimized import Optimized
from smelt.decoding.room import room_of
from smelt.errors import UsageError
from smelt.ir.build import Builder
from smelt.ir.cloning import clone_model
from smelt.ir.shapes.inference import ShapeInference
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan
from smelt.targets.base import Artifact, Plan
from smelt.targets.registry import find_target

PROMPT_TOKENS = 64
"""The most tokens of a prompt in one call; more tokens need a larger arena."""

CONTEXT = 2048
"""The number of tokens that a decoder has room for by default."""

EXAMPLE = "smelt compile model.onnx --target c --decode --context 512 -o decoder"


@dataclass(frozen=True)
class Part:
    """A planned program: its word in names of C, and the most tokens that a call takes."""

    word: str
    plan: Plan[Program, MemoryPlan]
    most: int


def context_of(models: Models, requested: int | None) -> int:
    """Return the number of tokens to read: ``requested``, by default what the model has room for.

    Raises UsageError E806 if the model has room for fewer.
    """
    network = models.step.network
    room = network.positions
    has_states = any(cache.kind == "replaced" for cache in network.ports.caches)
    if has_states and network.ports.positions is not None:
        room = room_of(models.programs(1).step, 1, {}, may_run=models.first is None)
    if requested is None:
        return CONTEXT if room is None else min(room, CONTEXT)
    if room is not None and requested > room:
        raise UsageError(
            "E806",
            f"the decoder has room for {room} tokens",
            why=f"{requested} are asked for; its caches or its table of positions are smaller",
            fix=f"--context {room}, or export the decoder with larger caches and more positions",
        )
    return requested


def parts_of(models: Models, context: int, target: str, options: Mapping[str, Any]) -> list[Part]:
    """Return the programs of a decoder that reads up to ``context`` tokens of one sequence.

    One of them is missing if the model takes one token a call, or has no caches and so reads all
    tokens in each call. Raises UsageError E808 for a model that the loop cannot feed, and what
    ``compile_model`` raises.
    """
    network = models.step.network
    _refuse_unknown_inputs(network)
    count = network.dim(1)
    if not network.ports.caches:
        return [_part("prompt", models.step, context, context, target, options)]
    parts = []
    if isinstance(count, str):
        most = min(PROMPT_TOKENS, context)
        parts.append(_part("prompt", models.step, most, context, target, options))
    elif count != 1:
        why = f"each of its calls takes {count} tokens"
        raise unwritten(why, "export it with an open number of tokens, or with one token")
    return [*parts, _part("step", models.step, 1, context, target, options)]


def _refuse_unknown_inputs(network: Network) -> None:
    """Raise UsageError E808 for an input that another model computes, such as an encoder."""
    ports = network.ports
    known = {ports.tokens, ports.mask, ports.positions, *ports.token_types, *ports.row_counts}
    known |= {cache.input for cache in ports.caches}
    for name in network.inputs:
        if name not in known:
            why = f"another model computes its input {name!r}"
            raise unwritten(why, "run it with smelt.Decoder(model, first, inputs=...)")


def _part(
    word: str, step: Optimized, most: int, context: int, target: str, options: Mapping[str, Any]
) -> Part:
    """Return the program ``word`` of the model ``step`` for 1 to ``most`` tokens a call."""
    model = clone_model(step.model)
    _keep_float_logits(model, step.network)
    base = find_target(target)
    planned = replace(base, emit=lambda plan: Artifact(base.name, plan.model, {}, plan))
    artifact = compile_model(
        model, target=planned, dims=_sizes(step.network, most, context), **options
    )
    return Part(word, artifact.plan, most)


def _keep_float_logits(model: ir.Model, network: Network) -> None:
    """Remove outputs that the loop does not read, and let the logits be float32."""
    graph, ports = model.graph, network.ports
    kept = {ports.logits, *(cache.output for cache in ports.caches)}
    for value in list(graph.outputs):
        if value.name not in kept:
            graph.outputs.remove(value)
    logits = next(value for value in graph.outputs if value.name == ports.logits)
    if logits.dtype != ir.DataType.FLOAT:
        b = Builder(model, graph, ShapeInference(model))
        wide = b.op("Cast", logits, to=int(ir.DataType.FLOAT))
        graph.outputs[graph.outputs.index(logits)] = wide
        logits.name, wide.name = None, ports.logits


def size_names(network: Network) -> dict[str, str]:
    """Return the C expression of each open size of the inputs: of ``count`` new tokens after
    ``length`` earlier ones.

    Raises UsageError E808 for a dim without a name.
    """
    ports = network.ports
    names: dict[int | str, str] = {network.dim(1): "count"}
    for cache in ports.caches:
        dims = network.inputs[cache.input]
        appended = cache.input in network.appended
        names.setdefault(dims[1 if appended else 0], "1")
        if cache.kind == "grown":
            names[dims[0 if appended else cache.axis]] = "length"
    for port in (ports.mask, ports.positions):
        if port is not None and len(network.inputs[port]) == 2:
            names.setdefault(network.inputs[port][0], "1")
    names[network.dim(0)] = "1"
    if ports.mask is not None and len(network.inputs[ports.mask]) == 2:
        total = network.inputs[ports.mask][1]
        if isinstance(total, str) and total.isidentifier():
            names.setdefault(total, "length + count")
    found = {name: text for name, text in names.items() if isinstance(name, str)}
    for name in found:
        if not name.isidentifier():
            why = f"the size {name!r} of an input has no name of its own"
            raise unwritten(why, "export it with dynamic axes that have names")
    return found


def _sizes(network: Network, most: int, context: int) -> dict[str, int | tuple[int, int]]:
    """Return the size, or the least and greatest size, of each open size of the inputs."""
    sizes: dict[str, int | tuple[int, int]] = {
        "1": 1,
        "count": 1 if network.ports.caches and most == 1 else (1, most),
        "length": (0, context),
        "length + count": (1, context),
    }
    return {name: sizes[text] for name, text in size_names(network).items()}


def unwritten(why: str, fix: str = EXAMPLE) -> UsageError:
    """Return E808 for a decoder that cannot be written as files."""
    return UsageError("E808", "the decoder cannot be written as C", why=why, fix=fix)
