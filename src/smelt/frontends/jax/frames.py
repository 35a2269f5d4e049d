"""Which line of the user's code made an equation, by what JAX writes down of it; copies keep it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jax._src import core, source_info_util
from jax._src.interpreters.partial_eval import DynamicJaxprTrace, DynamicJaxprTracer

from smelt.frontends.jax.compat import Equation, Jaxpr, Literal

_SMELT = str(Path(__file__).parents[2]) + os.sep


PLACE_OF = "jax._src.api_util:fun_sourceinfo"
"""Where the function is that says in which file and line a function is written."""


NO_PLACE = "<unknown>"
"""What it says of one that is written in none."""


def user_frame(equation: Equation) -> tuple[str, int, str] | None:
    """File, line and function of the innermost frame that made ``equation``.

    Frames of installed libraries, such as the layers of flax, and of smelt itself, which stands in
    for some of them, yield to the code that calls them.
    """
    chosen = None
    for frame in source_info_util.user_frames(equation.source_info.traceback):
        path = frame.file_name
        installed = "site-packages" in path or "dist-packages" in path or path.startswith(_SMELT)
        if chosen is None or not installed:
            chosen = path, frame.start_line, frame.function_name
        if not installed:
            break
    return chosen


def without_partials(fn: Any) -> Any:
    """What ``fn`` calls if it is a partial, perhaps of a partial; else ``fn`` itself."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn


def hide_frames(path: str) -> None:
    """Let no frame of the file ``path`` count as one of the user."""
    source_info_util.register_exclusion(path)


def name_stack(equation: Equation) -> str:
    """Named scopes around ``equation``, joined by slashes."""
    return str(equation.source_info.name_stack)


def is_user_code(jaxpr: Jaxpr) -> bool:
    """True if the function behind ``jaxpr`` is the user's, not one of JAX or a library."""
    info = jaxpr.debug_info
    path = (info.func_src_info or "").rpartition(" at ")[2].rpartition(":")[0]
    return is_user_file(path)


def is_user_file(path: str) -> bool:
    """True for a file that is neither of JAX nor of an installed library."""
    if "site-packages" in path or "dist-packages" in path:
        return False
    return bool(path) and bool(source_info_util.is_user_filename(path))


@contextmanager
def under(equation: Equation) -> Iterator[None]:
    """What is traced inside has the place, the names and the settings of ``equation``."""
    info = equation.source_info
    stack = source_info_util.current_name_stack() + info.name_stack
    with source_info_util.user_context(info.traceback, name_stack=stack), equation.ctx.manager:
        yield


def copied(equation: Equation, values: Sequence[Any]) -> list[Any] | None:
    """The results of ``equation`` for operands of the types of its own, in the trace of a jaxpr.

    To bind its primitive would find the types of the results anew. None where no jaxpr is traced,
    where ``values`` come from elsewhere, and for effects.
    """
    trace = core.trace_ctx.trace
    if not isinstance(trace, DynamicJaxprTrace) or equation.effects:
        return None
    info = equation.source_info
    info = info.replace(name_stack=source_info_util.current_name_stack() + info.name_stack)
    operands = []
    for atom, value in zip(equation.invars, values, strict=True):
        if isinstance(atom, Literal):
            operands.append(DynamicJaxprTracer(trace, atom.aval, atom, info))
        elif isinstance(value, DynamicJaxprTracer) and value._trace is trace:
            operands.append(value)
        else:
            return None
    types = [variable.aval for variable in equation.outvars]
    primitive, params = equation.primitive, equation.params
    return list(trace.emit_eqn(operands, types, primitive, params, set(), info, equation.ctx))
