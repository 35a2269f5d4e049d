"""Guards of passes: which there are, and whether a pass does something else without one of them.

A guard is an ``if`` of a pass with the number of a promise: ``if c.ndim > 1:  # needs 2``. Most
refuse: off, the condition is False. Where the body is what the pass does, off is True. A pass is
run on a copy of a model with its guards watched, and once more for each guard that refused,
without it: another graph, other misses, another number of rewrites or another error show that the
guard was needed.

Only code objects are exchanged, as in ``random_graphs/mutation.py``, and only for these runs.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import onnx_ir as ir

from smelt.ir import text
from smelt.ir.cloning import clone_model
from smelt.ir.names import forget_names
from smelt.passes import registry
from smelt.passes.base import Options, Pass, PassContext
from smelt.runtime.fold import evaluator

WATCH = "__guard__"
PLACES = {place.rpartition(".")[2]: place for place, _ in registry.own_passes()}
COMMENT = re.compile(r"# (?:(\w+) )?(?:needs|keeps) \d")
WRAPPED = ("build", "body", "fget", "func", "__func__")
"""Where rules, passes, properties and bound methods keep their functions."""

RUN = Pass.run


@dataclass(frozen=True)
class Guard:
    """An ``if`` at ``line`` of ``module``; ``off`` is its condition where it is off."""

    module: str
    line: int
    off: bool
    condition: str

    def __str__(self) -> str:
        return f"src/{self.module.replace('.', '/')}.py:{self.line}"


@cache
def numbered(name: str) -> tuple[Guard, ...]:
    """The guards with numbers of the pass ``name``: in its file and in those beside it."""
    if name not in PLACES:
        return ()
    package = PLACES[name].rpartition(".")[0]
    found = []
    for path in sorted(Path(import_module(PLACES[name]).__file__ or "").parent.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        owner = "" if path.stem == name else name
        for node in _branches(ast.parse(source)) if owner in source else ():
            if owner in _owners(source.splitlines(), node):
                condition = ast.unparse(node.test)
                place = f"{package}.{path.stem}", node.lineno
                found.append(Guard(*place, not refuses(node), condition))
    return tuple(found)


def _branches(tree: ast.Module) -> Iterator[ast.If]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            yield from (node for node in ast.walk(function) if isinstance(node, ast.If))


def _owners(lines: list[str], node: ast.If) -> set[str]:
    """Whose numbers stand above a guard, on it, or on the line by which it refuses; the empty name
    is the pass of the file."""
    is_below = lines[node.lineno - 2].strip().startswith("#")
    first, last = node.lineno - (2 if is_below else 1), node.body[0].lineno - (not refuses(node))
    return {found[1] or "" for line in lines[first:last] for found in COMMENT.finditer(line)}


def refuses(node: ast.If) -> bool:
    """Whether the body is one step that leaves with nothing, a miss or an error."""
    step = node.body[0]
    if node.orelse or len(node.body) > 1:
        return False
    if isinstance(step, ast.Return):
        value = step.value
        is_miss = isinstance(value, ast.Call) and ast.unparse(value.func) == "Miss"
        is_empty = isinstance(value, ast.Constant) and value.value in (None, False)
        return value is None or is_miss or is_empty
    return isinstance(step, ast.Raise | ast.Continue | ast.Break)


class _Watched(ast.NodeTransformer):
    """Each ``if`` tells its line and condition: ``if __guard__(41, c.ndim > 1):``."""

    def visit_If(self, node: ast.If) -> ast.If:
        self.generic_visit(node)
        arguments: list[ast.expr] = [ast.Constant(node.lineno), node.test]
        node.test = ast.Call(ast.Name(WATCH, ast.Load()), arguments, [])
        return node


@cache
def _watched(module: ModuleType) -> tuple[tuple[FunctionType, CodeType], ...]:
    """The functions of ``module`` that branch, with code that tells each condition."""
    path = module.__file__ or ""
    tree = _Watched().visit(ast.parse(Path(path).read_text(encoding="utf-8")))
    code = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    made = {(c.co_qualname, c.co_firstlineno): c for c in _codes(code)}
    keys = {f: (f.__code__.co_qualname, f.__code__.co_firstlineno) for f in _functions(module)}
    return tuple((function, made[key]) for function, key in keys.items() if key in made)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Functions and methods of ``module``, and those that its rules and passes hold."""
    own = [v for v in vars(module).values() if getattr(v, "__module__", "") == module.__name__]
    for holder in (module, *(value for value in own if isinstance(value, type))):
        for value in vars(holder).values():
            for part in (value, *(getattr(value, name, None) for name in WRAPPED)):
                function = unwrap(part) if callable(part) and not isinstance(part, type) else part
                if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                    yield function


class _Watcher:
    """Called with each condition; ``refused`` are lines of guards that were not as if off."""

    def __init__(self, guards: Collection[Guard]) -> None:
        self.guards = {guard.line: guard for guard in guards}
        self.refused: set[int] = set()
        self.off: Guard | None = None

    def __call__(self, line: int, condition: object) -> object:
        guard = self.guards.get(line)
        if guard is None or bool(condition) == guard.off:
            return condition
        self.refused.add(line)
        return guard.off if guard is self.off else condition


@contextmanager
def _watching(module: ModuleType, watcher: _Watcher) -> Iterator[None]:
    """Functions of ``module`` tell ``watcher`` their conditions within the context."""
    kept = [(function, function.__code__) for function, _ in _watched(module)]
    setattr(builtins, WATCH, watcher)
    for function, code in _watched(module):
        function.__code__ = code
    try:
        yield
    finally:
        for function, code in kept:
            function.__code__ = code
        delattr(builtins, WATCH)


def needed(
    pass_: Pass, cx: PassContext, options: Options, guards: Collection[Guard]
) -> Iterator[Guard]:
    """Those of ``guards`` without which ``pass_`` does something else to the model of ``cx``."""
    source = clone_model(cx.model)
    for name in {guard.module for guard in guards}:
        watcher = _Watcher([guard for guard in guards if guard.module == name])
        with _watching(import_module(name), watcher):
            before = _outcome(pass_, cx, source, options)
            for line in sorted(watcher.refused):
                watcher.off = watcher.guards[line]
                if _outcome(pass_, cx, source, options) != before:
                    yield watcher.off


def _outcome(pass_: Pass, cx: PassContext, source: ir.Model, options: Options) -> object:
    """The graph that the pass leaves of a copy and what it tells, or its error."""
    model = clone_model(source)
    forget_names(model)
    kept = ("operators", "kernels", "computes", "rewrites_left", "hidden")
    try:
        fresh = PassContext.of(model, evaluator(model) if cx.evaluate is not None else None)
        fresh = replace(fresh, **{name: getattr(cx, name) for name in kept})
        stats = RUN(pass_, fresh, options)
        return text.canonical(model), stats.missed, stats.fired, stats.rewrites, stats.interface
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)
