"""What the native engine computes in this process, by the phases of the host alone."""

from targets.host.conftest import agree_fixture, compile_host_fixture, engine

__all__ = ["agree_fixture", "compile_host_fixture", "engine"]
