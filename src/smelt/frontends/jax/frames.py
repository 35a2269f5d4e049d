"""Find the user's line behind an equation, and copy equations without losing that line."""

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


SOURCE_INFO = "jax._src.api_util:fun_sourceinfo"
"""The JAX function that returns the file and line in which a function is written."""


NO_PLACE = "<unknown>"
"""The result of that function for a function without a source file."""


def user_frame(equation: Equation) -> tuple[str, int, str] | None:
    """Return file, line and function of the innermost user frame behind ``equation``, or None.

    Frames of installed libraries, such as flax layers, and of smelt are used only if no user code
    calls them.
    """
    innermost = None
    for frame in source_info_util.user_frames(equation.source_info.traceback):
        path = frame.file_name
        installed = "site-packages" in path or "dist-packages" in path or path.startswith(_SMELT)
        if innermost is None or not installed:
            innermost = path, frame.start_line, frame.function_name
        if not installed:
            break
    return innermost


def without_partials(fn: Any) -> Any:
    """Return the function inside of nested ``functools.partial`` objects; else ``fn`` itself."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn


def hide_frames(path: str) -> None:
    """Tell JAX never to count a frame of the file ``path`` as user code."""
    source_info_util.register_exclusion(path)


def name_stack(equation: Equation) -> str:
    """Return the named scopes around ``equation``, joined by slashes."""
    return str(equation.source_info.name_stack)


def is_user_code(jaxpr: Jaxpr) -> bool:
    """True if user code, not JAX or a library, defines the function behind ``jaxpr``."""
    info = jaxpr.debug_info
    path = (info.func_src_info or "").rpartition(" at ")[2].rpartition(":")[0]
    return is_user_file(path)


def is_user_file(path: str) -> bool:
    """True for a file that belongs to neither JAX nor an installed library."""
    if "site-packages" in path or "dist-packages" in path:
        return False
    return bool(path) and bool(source_info_util.is_user_filename(path))


@contextmanager
def traced_as(equation: Equation) -> Iterator[None]:
    """Trace the ``with`` block with the source line, name stack and settings of ``equation``."""
    info = equation.source_info
    stack = source_info_util.current_name_stack() + info.name_stack
    with source_info_util.user_context(info.traceback, name_stack=stack), equation.ctx.manager:
        yield


def copy_equation(equation: Equation, values: Sequence[Any]) -> list[Any] | None:
    """Return the results of a copy of ``equation`` on ``values`` of the same types, or None.

    A copy is cheaper than binding the primitive, which infers the result types again. None outside
    of a jaxpr trace, if a value belongs to another trace, and for equations with effects.
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
