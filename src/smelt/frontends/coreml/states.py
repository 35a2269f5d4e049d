"""Readers of states. A state becomes an input, and the value that is written last an output."""

from __future__ import annotations

import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import Result, reads


def _state(call: Call, parameter: str) -> str:
    """Return the name of the state that is the argument of ``parameter``."""
    bound = call.arguments.get(parameter, [""])[0]
    if not isinstance(bound, str) or bound not in call.scope.shared.states:
        raise call.refused(f"{parameter} is not a state of the function")
    return bound


@reads("read_state")
def _read_state(call: Call) -> ir.Value:
    """Return the current value of a state."""
    return call.scope.shared.states[_state(call, "input")]


def _write(call: Call, state: str, value: ir.Value) -> None:
    """Make ``value`` the current value of a state; raises E121 in a branch or a loop body."""
    if call.scope.outer is not None:
        raise call.refused("a branch or loop body writes a state")
    call.scope.shared.states[state] = value
    call.scope.shared.written.add(state)


@reads("write_state")
def _write_state(call: Call) -> list[Result]:
    """Write a state and return nothing: the operator has no result."""
    _write(call, _state(call, "input"), call.value("data"))
    return []


@reads("coreml_update_state")
def _update_state(call: Call) -> ir.Value:
    """Write a state and return the written value."""
    value = call.value("value")
    _write(call, _state(call, "state"), value)
    return value
