"""An artifact of a model that two targets share: the fallback runs what the first refuses.

Each part is a folder with the files of its target, as if it were a model. ``parts.json`` tells how
values flow: values are numbered, inputs first, and each part reads and writes some of them, in
execution order.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import onnx_ir as ir

from smelt.errors import UsageError, damage
from smelt.ir.complex_pairs import COMPLEX
from smelt.ir.names import name_values
from smelt.ir.partition import Part, models_of_parts
from smelt.runtime.interface import Interface, Port, Value, interface_of
from smelt.spans import span
from smelt.targets.backend import emit_selected
from smelt.targets.base import Artifact, Plan, Target
from smelt.targets.runner import Runner
from smelt.targets.saved_folder import Saved

SCHEMA = "smelt.parts/1"
FILE = "parts.json"


class Step(NamedTuple):
    """A part to run: its runner, and the numbers of the values that it reads and writes."""

    run: Runner
    reads: Sequence[int]
    writes: Sequence[int]


def compose(
    model: ir.Model,
    parts: Sequence[Part],
    chosen: tuple[Target[Any, Any], Any],
    fallback: Target[Any, Any],
    prepare: Callable[[ir.Model], None],
) -> Artifact:
    """Emit each of ``parts`` of a selected model and join them into one Artifact.

    Regions are emitted by the ``chosen`` target with its options, the other parts by ``fallback``
    after ``prepare``.
    """
    target, target_options = chosen
    name_values(model)
    uncut = model.clone()
    interface = interface_of(model)
    outputs, reads_and_writes = _numbered(model, parts)
    artifacts = _artifacts(model, parts, chosen, fallback, prepare)
    plan: Plan[Any, Any] = Plan(uncut, target_options)
    for emitter in (target, fallback):
        count = sum(len(p.nodes) for p in parts if p.taken == (emitter is target))
        plan.facts[f"nodes on {emitter.name}"] = count
    plan.facts["parts"] = len(parts)
    document = _document(target, interface, outputs, artifacts, reads_and_writes)
    files = {FILE: (json.dumps(document, indent=1) + "\n").encode()}
    for folder, artifact in zip(_folders(artifacts), artifacts, strict=True):
        files.update({f"{folder}/{name}": artifact.files[name] for name in artifact.files})
    report = {**plan.facts, "each": [{"target": a.target, **a.report} for a in artifacts]}

    def load() -> Runner:
        """Return a runner of the parts, one after the other."""
        steps = [
            Step(artifact.opened(), *flow)
            for artifact, flow in zip(artifacts, reads_and_writes, strict=True)
        ]
        return _chain(interface, steps, outputs)

    runs = all(artifact.load is not None for artifact in artifacts)
    return Artifact(target.name, uncut, files, plan, report, load if runs else None)


def _numbered(
    model: ir.Model, parts: Sequence[Part]
) -> tuple[list[int], list[tuple[list[int], list[int]]]]:
    """Return the numbers of the model's outputs, and of the values that each part reads and writes.

    The inputs of the model have the first numbers; the results of the parts follow.
    """
    numbers = {value: i for i, value in enumerate(model.graph.inputs)}
    for part in parts:
        for value in part.writes:
            numbers.setdefault(value, len(numbers))
    outputs = [numbers[value] for value in model.graph.outputs]
    return outputs, [([numbers[v] for v in p.reads], [numbers[v] for v in p.writes]) for p in parts]


def _artifacts(
    model: ir.Model,
    parts: Sequence[Part],
    chosen: tuple[Target[Any, Any], Any],
    fallback: Target[Any, Any],
    prepare: Callable[[ir.Model], None],
) -> list[Artifact]:
    """Emit each of ``parts``: regions by the ``chosen`` target, others by ``fallback``."""
    target, target_options = chosen
    artifacts = []
    for i, (part, part_model) in enumerate(zip(parts, models_of_parts(model, parts), strict=True)):
        emitter = target if part.taken else fallback
        with span("part", target=emitter.name, nodes=len(part.nodes)):
            if not part.taken:
                prepare(part_model)
            options = target_options if part.taken else _options(fallback, i)
            artifacts.append(emit_selected(part_model, emitter, options))
    return artifacts


def _folders(artifacts: Sequence[Artifact]) -> list[str]:
    """Return the folder of each part."""
    return [f"part{i}_{artifact.target}" for i, artifact in enumerate(artifacts)]


def _options(fallback: Target[Any, Any], index: int) -> Any:
    """Return the fallback's options; an option ``name`` gets a different value for each part."""
    if fallback.options is None:
        return None
    named = any(field.name == "name" for field in dataclasses.fields(fallback.options))
    return fallback.options(**({"name": f"part{index}"} if named else {}))


def _document(
    target: Target[Any, Any],
    interface: Interface,
    outputs: Sequence[int],
    artifacts: Sequence[Artifact],
    reads_and_writes: Sequence[tuple[Sequence[int], Sequence[int]]],
) -> dict[str, Any]:
    """Return the contents of ``parts.json``."""
    rows = zip(_folders(artifacts), artifacts, reads_and_writes, strict=True)
    return {
        "schema": SCHEMA,
        "target": target.name,
        "inputs": [_entry(port) for port in interface.inputs],
        "outputs": [
            {**_entry(port), "value": number}
            for port, number in zip(interface.outputs, outputs, strict=True)
        ],
        "parts": [
            {"target": a.target, "folder": folder, "reads": reads, "writes": writes}
            for folder, a, (reads, writes) in rows
        ],
    }


def _entry(port: Port) -> dict[str, Any]:
    """Return one port as JSON data."""
    dtype = None if port.dtype is None else port.dtype.name.lower()
    shape = (
        None if port.shape is None else [d if isinstance(d, int) else str(d) for d in port.shape]
    )
    entry = {"name": port.name, "dtype": dtype, "shape": shape}
    return entry if port.complex is None else {**entry, "complex": True}


def _chain(interface: Interface, steps: Sequence[Step], outputs: Sequence[int]) -> Runner:
    """Return a runner of all parts in order; a value is freed after the last part that reads it."""
    last_reader = {number: i for i, step in enumerate(steps) for number in step.reads}
    last_reader.update(dict.fromkeys(outputs, len(steps)))

    def run(*inputs: Value) -> tuple[Value, ...]:
        """Run all parts; raises UsageError E671 for a wrong number of arrays."""
        if len(inputs) != len(interface.inputs):
            raise UsageError(
                "E671",
                f"{len(inputs)} arrays for {len(interface.inputs)} inputs",
                why="each input takes one array",
                fix="pass one array per input; `smelt inspect` shows the inputs",
            )
        known: dict[int, Value] = {}
        for number, (port, source) in enumerate(zip(interface.inputs, inputs, strict=True)):
            known[number] = port.default.numpy() if source is None and port.default else source
        for i, step in enumerate(steps):
            results = step.run(*(known[number] for number in step.reads))
            known.update(zip(step.writes, results, strict=True))
            for number in {*step.reads, *step.writes}:
                if last_reader.get(number, -1) <= i:
                    del known[number]
        return tuple(known[number] for number in outputs)

    return run


def open_parts(folder: Path, opened: Callable[[Path, str], Saved]) -> Saved | None:
    """Return the artifact in parts that was saved to ``folder``; None if there is none.

    ``opened`` opens the folder of one part. Raises UsageError E616 if ``parts.json`` is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            return None
        interface = Interface(
            tuple(map(_port, document["inputs"])), tuple(map(_port, document["outputs"]))
        )
        outputs = [int(entry["value"]) for entry in document["outputs"]]
        parts = [
            (_part_folder(folder, p["folder"]), str(p["target"]), p) for p in document["parts"]
        ]
        reads_and_writes = [
            ([*map(int, p["reads"])], [*map(int, p["writes"])]) for _, _, p in parts
        ]
    except (KeyError, TypeError, ValueError) as error:
        what = f"{FILE!r} in {str(folder)!r} is damaged"
        raise UsageError("E616", what, why=damage(error), fix="compile the model again") from error
    saved = [opened(path, target) for path, target, _ in parts]

    def load() -> Runner:
        """Return a runner of the saved parts, one after the other."""
        steps = [Step(one.load(), *flow) for one, flow in zip(saved, reads_and_writes, strict=True)]
        return _chain(interface, steps, outputs)

    return Saved(str(document["target"]), interface, load)


def _part_folder(folder: Path, name: object) -> Path:
    """Return the path of a part's folder; raises ValueError if it is not directly in ``folder``."""
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"{name!r} is no folder of a part")
    return folder / name


def _port(entry: Mapping[str, Any]) -> Port:
    """Return the port of a JSON entry."""
    shape = entry["shape"]
    dtype = None if entry["dtype"] is None else ir.DataType[entry["dtype"].upper()]
    pairs_of = COMPLEX.get(dtype) if dtype is not None and entry.get("complex") else None
    dims = None
    if shape is not None:
        dims = tuple(d if isinstance(d, int) else ir.SymbolicDim(str(d)) for d in shape)
    return Port(str(entry["name"]), dtype, dims, complex=pairs_of)
