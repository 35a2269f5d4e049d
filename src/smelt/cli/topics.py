"""The topics of ``smelt explain``: codes, passes, targets, consumers and operators, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from smelt.error_codes import CODES
from smelt.errors import UsageError, did_you_mean, letters_of

LISTS = "`smelt passes` lists passes, `smelt targets` targets, and docs/errors.md error codes"

Kind: TypeAlias = Literal["code", "pass", "stage", "target", "consumer", "operator"]


@dataclass(frozen=True)
class Topic:
    """A topic, with the name that users type; ``domain`` is the domain of an operator."""

    kind: Kind
    name: str
    domain: str = ""

    @property
    def spelling(self) -> str:
        """The name, preceded by the domain for operators beyond ONNX."""
        return f"{self.domain}.{self.name}" if self.domain else self.name


def topics() -> Iterator[Topic]:
    """Yield every topic; of several with one name, `smelt explain` shows the first."""
    from smelt import operators
    from smelt.consumers.find import ANY, consumers
    from smelt.ir import opset
    from smelt.passes.pipelines import STAGES
    from smelt.passes.registry import ALIASES, passes
    from smelt.targets.registry import target_names

    yield from (Topic("code", code) for code in CODES)
    yield from (Topic("pass", pass_.spelling) for pass_ in passes().values())
    yield from (Topic("pass", alias.replace("_", "-")) for alias in ALIASES)
    yield from (Topic("target", name) for name in target_names())
    yield from (Topic("stage", name) for name in STAGES)
    yield from (Topic("consumer", name) for name in (*consumers(), ANY))
    for name, domains in opset.domains().items():
        yield from (Topic("operator", name, domain) for domain in domains)
    for operator in operators.all_operators():
        yield Topic("operator", operator.name, operator.domain)


def find_topics(name: str) -> list[Topic]:
    """Return the topics that ``name`` may mean, best first; raises UsageError E638 if none.

    Exact spellings come first, then those that differ in capitals, hyphens or underscores.
    ``KIND:NAME`` names a topic of one kind: ``consumer:quantize`` is not the stage ``quantize``.
    """
    every = list(topics())
    kind, colon, rest = name.partition(":")
    if colon and any(topic.kind == kind for topic in every):
        every, name = [topic for topic in every if topic.kind == kind], rest
    exact = [topic for topic in every if name in (topic.spelling, topic.name)]
    near = [
        topic
        for topic in every
        if topic not in exact
        and letters_of(name) in (letters_of(topic.spelling), letters_of(topic.name))
    ]
    if exact or near:
        return [*exact, *near]
    raise UsageError(
        "E638",
        f"there is no error code, pass, stage, target, consumer or operator {name!r}",
        fix=did_you_mean(name, (topic.spelling for topic in every), LISTS),
        why="no topic has this name in any spelling",
    )
