"""Connect to a Ray cluster, or start one on this machine while it is needed."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from smelt.errors import UsageError, not_installed

PATIENCE = 10.0
"""Seconds to wait for a connection to the address of a cluster."""

LOCAL = "local"
"""The address for a cluster that is started on this machine and ended afterwards."""


@contextmanager
def connected(address: str = LOCAL) -> Iterator[None]:
    """Connect Ray to ``address``: ``local``, ``auto``, ``HOST:PORT`` or ``ray://HOST:PORT``.

    A process that is already connected keeps its connection. Raises UsageError E694 if there is no
    cluster, E631 if ray is not installed.
    """
    # Ray sends usage statistics unless this variable is 0.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        from ray import init
    except ImportError as error:  # also if a folder called ray shadows the package
        if error.name != "ray":
            raise
        raise not_installed("ray", "ray", "--ray") from error
    if ray.is_initialized():
        yield
        return
    local = {"include_dashboard": False} if address == LOCAL else {}
    previous_handler = signal.getsignal(signal.SIGTERM)
    try:
        _check_listening(address)
        init(address, log_to_driver=False, logging_level=logging.ERROR, **local)
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(
            "E694",
            f"there is no Ray cluster at {address!r}",
            why=str(error).strip().partition("\n")[0],
            fix="use --ray local to start a cluster on this machine",
        ) from error
    if threading.current_thread() is threading.main_thread():
        # Undo Ray's handler, which aborts with a stack trace.
        signal.signal(signal.SIGTERM, previous_handler or signal.SIG_DFL)
    try:
        yield
    finally:
        ray.shutdown()


def _check_listening(address: str) -> None:
    """Raise OSError if nothing listens at ``HOST:PORT``; ``ray.init`` would wait forever."""
    host, colon, port = address.rpartition("/")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
