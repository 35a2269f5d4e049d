"""Shell completion of targets, consumers, commands, passes, stages and topics."""

from __future__ import annotations


def targets(incomplete: str) -> list[str]:
    """Return the installed targets that start with ``incomplete``."""
    from smelt.targets.registry import target_names

    return [name for name in target_names() if name.startswith(incomplete)]


def consumers(incomplete: str) -> list[str]:
    """Return completions of the list ``incomplete`` of consumers, by the text after its last comma.

    Each completion repeats the text before that comma.
    """
    from smelt.consumers.find import ANY, consumers

    typed, last = incomplete[: incomplete.rfind(",") + 1], incomplete[incomplete.rfind(",") + 1 :]
    return [typed + name for name in (ANY, *consumers()) if name.startswith(last)]


def commands(incomplete: str) -> list[str]:
    """Return the commands of smelt that start with ``incomplete``."""
    from smelt.cli.known_commands import COMMANDS

    return [name for name in COMMANDS if name.startswith(incomplete)]


def pipelines(incomplete: str) -> list[str]:
    """Return completions of the pipeline ``incomplete``, such as ``canonicalize,fuse-``.

    Passes and stages are matched with the text after the last comma or parenthesis; each completion
    repeats the text before it.
    """
    from smelt.passes.pipelines import STAGES
    from smelt.passes.registry import passes

    at = max(incomplete.rfind(","), incomplete.rfind("(")) + 1
    typed, last = incomplete[:at], incomplete[at:]
    names = [*STAGES, *sorted(item.spelling for item in passes().values())]
    return [typed + name for name in names if name.startswith(last)]


def passes(incomplete: str) -> list[str]:
    """Return completions of the list ``incomplete`` of passes, by the text after the last comma."""
    from smelt.passes.registry import passes as registered

    typed, last = incomplete[: incomplete.rfind(",") + 1], incomplete[incomplete.rfind(",") + 1 :]
    names = sorted(item.spelling for item in registered().values())
    return [typed + name for name in names if name.startswith(last)]


def topics(incomplete: str) -> list[str]:
    """Return the topics of ``smelt explain`` that start with ``incomplete``, in any case."""
    from smelt.cli.topics import topics as every

    names = dict.fromkeys(topic.spelling for topic in every())
    return [name for name in names if name.lower().startswith(incomplete.lower())]
