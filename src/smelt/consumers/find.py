"""Find consumers by name: ``openvino``, ``onnxruntime>=1.18``, or ``any``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from smelt.consumers.chosen import Chosen
from smelt.consumers.consumer import Consumer, Version
from smelt.errors import UsageError, did_you_mean
from smelt.registry import modules_in

ANY = "any"
"""The name for all consumers of ``WIDEST`` together, at opset 17."""

WIDEST = ("onnxruntime>=1.17", "openvino", "quantize")
OPSET_OF_WIDEST = 17
"""The consumers that ``ANY`` names, and the opset at which they are targeted."""

_WRITTEN = re.compile(r"([a-z][a-z0-9-]*)(?:>=(\d+(?:\.\d+)*))?")


@cache
def consumers() -> Mapping[str, Consumer]:
    """Return every consumer by name, in the order of names; each file of ``known`` holds one."""
    modules = modules_in("smelt.consumers.known")
    values = (value for module in modules for value in vars(module).values())
    unsorted = {value.name: value for value in values if isinstance(value, Consumer)}
    return dict(sorted(unsorted.items()))


def find_consumers(text: str | Iterable[str]) -> Chosen:
    """Return the common limits of the consumers that ``text`` names, separated by commas.

    Raises UsageError E612 for an unknown name, for ``any`` with other names, and for a version of a
    consumer that smelt knows in one version only.
    """
    written = text.split(",") if isinstance(text, str) else list(text)
    names = [name.strip() for name in written if name.strip()]
    if names == [ANY]:
        return Chosen(tuple(map(_find, WIDEST)), OPSET_OF_WIDEST)
    if ANY in names:
        raise UsageError(
            "E612",
            f"{ANY} is named together with {', '.join(n for n in names if n != ANY)}",
            why=f"{ANY} stands for {', '.join(WIDEST)} together",
            fix=f"name them one by one: --for {','.join(WIDEST)}",
        )
    return Chosen(tuple(map(_find, names)))


def _find(spec: str) -> Consumer:
    """Return the consumer that ``NAME`` or ``NAME>=VERSION`` names; raises UsageError E612."""
    match = _WRITTEN.fullmatch(spec)
    name, version = match.groups() if match else (spec, None)
    consumer, names = consumers().get(name), [*consumers(), ANY]
    if consumer is None:
        raise UsageError(
            "E612",
            f"there is no consumer {spec!r}",
            why=f"smelt knows {', '.join(names)}",
            fix=did_you_mean(name, names, f"name one of these: --for {names[0]}"),
        )
    if version is None:
        return consumer
    if consumer.at is None:
        raise UsageError(
            "E612",
            f"{spec!r} names a version of the consumer {name}",
            why="smelt knows its operators for one version only; docs/consumers.md names it",
            fix=f"--for {name}",
        )
    return consumer.at(_numbers(version))


def _numbers(version: str) -> Version:
    """Return the numbers of a version such as ``1.18``."""
    return tuple(int(part) for part in version.split("."))
