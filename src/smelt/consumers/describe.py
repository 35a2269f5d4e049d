"""Describe consumers as plain data, for ``smelt explain``."""

from __future__ import annotations

from typing import Any

from smelt.consumers.consumer import Consumer, Takes
from smelt.consumers.find import ANY, OPSET_OF_WIDEST, consumers, find_consumers


def describe_consumer(name: str) -> dict[str, Any]:
    """Return the limits of the consumer ``name``, their source, and its known defects.

    ``operators`` maps each supported operator to its limits in words ("" for none); it is None if
    all operators of ONNX except ``refused`` are supported.
    """
    if name == ANY:
        return _describe_widest()
    consumer = consumers()[name]
    return {
        "name": consumer.name,
        "summary": consumer.summary,
        "source": consumer.source,
        "defects": list(consumer.defects),
        "opsets": list(consumer.opsets),
        "operators": consumer.operators
        and {op: limits(x) for op, x in sorted(consumer.operators.items())},
        "refused": dict(consumer.refused),
        "limits": _limits_of_all(consumer),
        "passes": {"left_out": list(consumer.without), "added": consumer.prefers},
    }


def _describe_widest() -> dict[str, Any]:
    """Return the facts of ``any``: the consumers that it stands for, and their common limits."""
    chosen = find_consumers(ANY)
    lowest = max(consumer.opsets[0] for consumer in chosen.consumers)
    return {
        "name": ANY,
        "summary": f"{chosen} together",
        "source": "the sources of these consumers",
        "defects": [defect for consumer in chosen.consumers for defect in consumer.defects],
        "opsets": [lowest, OPSET_OF_WIDEST],
        "operators": None,
        "refused": {
            op: why for consumer in chosen.consumers for op, why in consumer.refused.items()
        },
        "limits": [],
        "passes": {"left_out": [x for c in chosen.consumers for x in c.without], "added": ""},
    }


def limits(form: Takes) -> str:
    """Return the limits of one operator in words, "" if it is supported in every form."""
    words = _limits(form)
    return f"{words}, or {limits(form.otherwise)}" if form.otherwise is not None else words


def _limits(form: Takes) -> str:
    """Return the limits of one form of an operator in words."""
    parts = []
    if form.ranks is not None:
        low, high = form.ranks
        parts += [f"{low} to {high} dims" if low < high else f"{low} dims"]
    if form.constant:
        noun = "input" if len(form.constant) == 1 else "inputs"
        parts += [f"constant {noun} {', '.join(map(str, form.constant))}"]
    parts += [f"input {place} present" for place in form.present]
    for place, elements in form.values.items():
        parts += [f"elements {' or '.join(map(str, elements))} of input {place}"]
    for name, allowed in form.attributes.items():
        parts += [f"{name} {' or '.join(map(str, allowed))}"]
    parts += [f"{name} named" for name in form.written]
    parts += [f"{name} not named" for name in form.unwritten]
    parts += [] if form.samples else ["no constant of several samples"]
    if form.newest is not None:
        parts += [f"version {form.newest} at most"]
    if form.types is not None:
        parts += [f"element type {' or '.join(sorted(x.name.lower() for x in form.types))}"]
    if not form.gaps:
        parts += ["no input absent before others"]
    return "; ".join(parts)


def _limits_of_all(consumer: Consumer) -> list[str]:
    """Return in words the limits of ``consumer`` that apply to all operators."""
    limits_and_words = (
        (consumer.fixed_sizes, "fixed sizes"),
        (consumer.max_rank, f"at most {consumer.max_rank} dims"),
        (consumer.narrow_integers, "int32 instead of int64"),
        (consumer.ir_version, f"file format up to {consumer.ir_version}"),
        (consumer.types, ", ".join(sorted(x.name.lower() for x in consumer.types or ()))),
    )
    return [words for limit, words in limits_and_words if limit]
