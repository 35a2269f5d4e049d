"""What a shell completes: names of targets, commands, passes and stages."""

from __future__ import annotations


def targets(incomplete: str) -> list[str]:
    """Installed targets."""
    from smelt.targets.registry import target_names

    return [name for name in target_names() if name.startswith(incomplete)]


def commands(incomplete: str) -> list[str]:
    """Commands of smelt."""
    from smelt.cli.main import COMMANDS

    return [name for name in COMMANDS if name.startswith(incomplete)]


def pipelines(incomplete: str) -> list[str]:
    """Pipelines that go on from what is typed: its last name becomes a pass or a stage."""
    from smelt.passes.pipelines import STAGES
    from smelt.passes.registry import passes

    at = max(incomplete.rfind(","), incomplete.rfind("(")) + 1
    typed, last = incomplete[:at], incomplete[at:]
    names = [*STAGES, *sorted(item.spelling for item in passes().values())]
    return [typed + name for name in names if name.startswith(last)]


def passes(incomplete: str) -> list[str]:
    """Passes, the last of those that are typed."""
    from smelt.passes.registry import passes as registered

    typed, last = incomplete[: incomplete.rfind(",") + 1], incomplete[incomplete.rfind(",") + 1 :]
    names = sorted(item.spelling for item in registered().values())
    return [typed + name for name in names if name.startswith(last)]


def topics(incomplete: str) -> list[str]:
    """What ``smelt explain`` explains."""
    from smelt.cli.topics import topics as every

    names = dict.fromkeys(topic.spelling for topic in every())
    return [name for name in names if name.lower().startswith(incomplete.lower())]
