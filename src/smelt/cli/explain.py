"""``smelt explain TOPIC``: print the details that do not fit into an error message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.command import Json, command, print_json
from smelt.cli.completion import topics as completed
from smelt.cli.layout import prose, table
from smelt.error_codes import CODES

if TYPE_CHECKING:
    from smelt.cli.topics import Kind, Topic

Facts = dict[str, Any]
"""What is known of a topic, as ``--json`` prints it."""


TopicName = Annotated[
    str,
    typer.Argument(
        metavar="CODE|PASS|STAGE|TARGET|CONSUMER|OPERATOR",
        help="A name such as E101, fuse-swish, default, c, openvino or Resize.",
        autocompletion=completed,
    ),
]


@command
def explain(
    topic: TopicName,
    as_json: Json = False,
) -> None:
    """Explain an error code, pass, stage, target, consumer or operator.

    Example: smelt explain E401
    """
    from smelt.cli.topics import find_topics

    first, *others = find_topics(topic)
    facts_of, show = EXPLAINED[first.kind]
    facts = facts_of(first)
    if as_json:
        print_json({"schema": "smelt.explain/1", "kind": first.kind, **facts})
        return
    show(facts)
    for other in others:
        typed = f"{other.kind}:{other.spelling}"
        print(prose(f"\nThere is the {other.kind} {other.spelling}, too: smelt explain {typed}"))


def _code(topic: Topic) -> Facts:
    """Return the facts of an error code."""
    return {"code": topic.name, **CODES[topic.name]._asdict()}


def _show_code(facts: Facts) -> None:
    """Print title, meaning and fix of an error code."""
    print(prose(f"{facts['code']} {facts['title']}\n\n{facts['meaning']}\n\nFix: {facts['fix']}"))


def _pass(topic: Topic) -> Facts:
    """Return the facts of a pass, with its page."""
    from smelt.cli.passes import describe
    from smelt.passes.registry import find_pass

    pass_ = find_pass(topic.name)
    return {**describe(pass_), "page": pass_.page.strip()}


def _show_pass(facts: Facts) -> None:
    """Print the page of a pass, its exactness, order, options and source."""
    print(prose(f"{facts['name']}\n\n{facts['page']}\n\nResults: {facts['results']}"))
    for word in ("after", "before", "options", "source"):
        _show_list(word.capitalize(), facts[word])


def _stage(topic: Topic) -> Facts:
    """Return the name of a stage and its passes as text of several lines."""
    from smelt.passes.indented_text import indented_text
    from smelt.passes.pipeline import parse

    return {"name": topic.name, "pipeline": indented_text(parse(topic.name))}


def _show_stage(facts: Facts) -> None:
    """Print the passes of a stage."""
    print(f"The stage {facts['name']} stands for\n\n{facts['pipeline']}")


def _target(topic: Topic) -> Facts:
    """Return the facts of a target."""
    from smelt.targets.describe import describe_target
    from smelt.targets.registry import find_target

    return describe_target(find_target(topic.name))


def _symbolic(facts: Facts) -> str:
    """Return whether the target allows symbolic dims, in words."""
    if facts["dynamic_dims"]:
        return "yes"
    if facts["bounded_dims"]:
        return "within bounds: --dim NAME=LOW..HIGH"
    return "no: bind them with --dim"


def _show_target(facts: Facts) -> None:
    """Print the limits, options, passes and phases of a target."""
    print(prose(f"{facts['name']}: {facts['summary']}\n"))
    lowest, highest = facts["opset"]
    rank = facts["max_rank"]
    rows = [
        ("element types", _all_or(facts["dtypes"], "all")),
        ("symbolic dims", _symbolic(facts)),
        ("dims of a value", "any number" if rank is None else f"at most {rank}"),
        ("opset", f"from {lowest}" if highest >= ANY_OPSET else f"{lowest} to {highest}"),
        ("functions", "kept" if facts["functions"] else "inlined"),
        ("operators of ONNX", _all_or(facts["kernels"], "all")),
        ("operators beyond", _all_or(facts["extensions"], "all that ONNX can express")),
        ("its own", _all_or(facts["own_operators"], "")),
        ("relative error", f"{facts['tolerance']:g} at most, where its arithmetic explains it"),
    ]
    print(table([row for row in rows if row[1]]))
    options = [(f"  {name}", o["type"], str(o["default"])) for name, o in facts["options"].items()]
    if options:
        print("\nOptions (--option NAME=VALUE), types and defaults\n" + table(options))
    if facts["passes"]:
        from smelt.passes.indented_text import indented_text
        from smelt.passes.pipeline import parse

        print(
            "\nPasses after those of the pipeline\n" + indented_text(parse(facts["passes"]), "  ")
        )
    print("\nPhases\n" + table([(f"  {name}", what) for name, what in facts["phases"].items()]))


ANY_OPSET = 10**6
"""A target whose highest opset is at least this one has no upper limit."""


def _consumer(topic: Topic) -> Facts:
    """Return the facts of a consumer of ONNX files."""
    from smelt.consumers.describe import describe_consumer

    return describe_consumer(topic.name)


def _show_consumer(facts: Facts) -> None:
    """Print what a consumer takes, the source of these limits, and its known defects."""
    print(prose(f"{facts['name']}: {facts['summary']}\n"))
    lowest, highest = facts["opsets"]
    passes, operators = facts["passes"], facts["operators"]
    rows = [
        ("opsets", f"from {lowest}" if highest >= ANY_OPSET else f"{lowest} to {highest}"),
        ("operators", "all of ONNX" if operators is None else f"{len(operators)}, listed below"),
        ("limits of all nodes", ", ".join(facts["limits"]) or "none"),
        ("passes left out", ", ".join(passes["left_out"])),
        ("passes added", passes["added"]),
    ]
    print(table([row for row in rows if row[1]]) + "\n")
    print(prose(f"Source: {facts['source']}"))
    for defect in facts["defects"]:
        print(prose(f"Known: {defect}"))
    for operator, why in facts["refused"].items():
        print(prose(f"Not taken: {operator}, because {why}"))
    if operators:
        plain = [name for name, limits in operators.items() if not limits]
        print(prose(f"\nOperators: {', '.join(plain)}"))
        print(table([(f"  {name}", limits) for name, limits in operators.items() if limits]))


def _operator(topic: Topic) -> Facts:
    """Return the facts of an operator."""
    from smelt.targets.describe import describe_operator

    return describe_operator(topic.domain, topic.name)


def _show_operator(facts: Facts) -> None:
    """Print the signature of an operator, the targets that support it, and passes that use it."""
    domain = facts["domain"] or "ai.onnx"
    since = ", ".join(map(str, facts["since"]))
    deprecation = " (deprecated)" if facts["deprecated"] else ""
    print(f"{facts['name']}{deprecation}: of the domain {domain}, versions {since}\n")
    print(prose(facts["summary"] or "(not documented)") + "\n")
    for word in ("inputs", "outputs"):
        _show_list(word.capitalize(), facts[word])
    _show_list("Attributes", facts["attributes"])
    rows = [
        (f"  {name}", "yes" if fact["takes"] else "no", fact["why"] or _all_or(fact["dtypes"], ""))
        for name, fact in facts["targets"].items()
    ]
    print("\nTargets\n" + table(rows))
    if facts["program"]:
        print(prose(f"\nAs a program: {facts['program']}"))
    words = {"look_for_it": "Looked for by", "make_it": "Made by", "name_it": "Also named by"}
    print()
    for key, word in words.items():
        _show_list(word, facts["passes"][key])


def _show_list(word: str, items: Mapping[str, Any] | list[str] | str) -> None:
    """Print ``Word: a, b`` or ``Word: a=1, b=2`` on wrapped lines; nothing if ``items`` is
    empty."""
    if isinstance(items, Mapping):
        items = [name if value is None else f"{name}={value}" for name, value in items.items()]
    text = items if isinstance(items, str) else ", ".join(items)
    if text:
        print(prose(f"{word}: {text}"))


def _all_or(names: list[str] | None, otherwise: str) -> str:
    """Return ``names`` separated by commas, or ``otherwise`` for None."""
    return otherwise if names is None else ", ".join(names)


# For each kind of topic: the function that collects its facts, and the one that prints them.
EXPLAINED: Mapping[Kind, tuple[Callable[[Topic], Facts], Callable[[Facts], None]]] = {
    "code": (_code, _show_code),
    "pass": (_pass, _show_pass),
    "stage": (_stage, _show_stage),
    "target": (_target, _show_target),
    "consumer": (_consumer, _show_consumer),
    "operator": (_operator, _show_operator),
}
