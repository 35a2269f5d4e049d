"""Run one measurement in a process of its own, so that none pays for the heap of another."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

TIMEOUT = 120.0


def in_own_process(task: Callable[..., Any], *arguments: Any, timeout: float = TIMEOUT) -> Any:
    """Return the result of ``task``, which is no text, or a text that says why there is none.

    The process is forked, so what is imported before counts for none of them.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(task, arguments, sender))
    process.start()
    sender.close()
    try:
        answer = receiver.recv() if receiver.poll(timeout) else f"over {timeout:.0f} s"
    except EOFError:
        answer = "crashed"
    process.kill()
    process.join()
    return answer


def _child(task: Callable[..., Any], arguments: tuple[Any, ...], sender: Connection) -> None:
    try:
        sender.send(task(*arguments))
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is what is to be shown
        sender.send(f"{type(error).__name__}: {error}".splitlines()[0][:60])
