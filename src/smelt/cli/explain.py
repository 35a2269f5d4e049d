"""``smelt explain CODE|PASS``: more than fits into a message."""

from __future__ import annotations

from typing import Annotated

import typer

from smelt.cli.command import Json, command, print_json
from smelt.cli.completion import topics
from smelt.cli.layout import prose
from smelt.error_codes import CODES
from smelt.errors import UsageError, did_you_mean


@command
def explain(
    topic: Annotated[
        str,
        typer.Argument(
            metavar="CODE|PASS", help="Such as E101 or fuse-swish.", autocompletion=topics
        ),
    ],
    as_json: Json = False,
) -> None:
    """Explain an error code or a pass."""
    known = CODES.get(topic.upper())
    if known is not None:
        if as_json:
            print_json({"schema": "smelt.explain/1", "code": topic.upper(), **known._asdict()})
        else:
            text = f"{topic.upper()} {known.title}\n\n{known.meaning}\n\nFix: {known.fix}"
            print(prose(text))
        return
    from smelt.cli.passes import describe
    from smelt.passes.registry import passes

    found = passes().get(topic.replace("-", "_"))
    if found is None:
        names = [*CODES, *(item.spelling for item in passes().values())]
        raise UsageError(
            "E638",
            f"there is no error code and no pass {topic!r}",
            fix=did_you_mean(topic, names, "`smelt passes` lists the passes"),
        )
    facts = describe(found)
    if as_json:
        print_json({"schema": "smelt.explain/1", **facts, "page": found.page.strip()})
        return
    print(prose(f"{found.spelling}\n\n{found.page.strip()}\n\nResults: {found.exactness}"))
    for word in ("after", "before", "options", "source"):
        if facts[word]:
            given = facts[word]
            pairs = [f"{k}={v}" for k, v in given.items()] if isinstance(given, dict) else given
            text = given if isinstance(given, str) else ", ".join(pairs)
            print(prose(f"{word.capitalize()}: {text}"))
