"""Deliberately wrong passes: a function whose text is changed at one place, while it runs."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType

from smelt.ir.rule import Rule
from smelt.passes.base import Pass


@dataclass(frozen=True)
class Mutant:
    """``pass_`` with ``old`` replaced by ``new`` in ``function``, ``module:name`` under smelt.

    ``focus`` is the family of moves that makes what the pass rewrites.
    """

    focus: str
    pass_: str
    function: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.function}: {self.old} -> {self.new}"


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The function computes something else within the context.

    Only its code is exchanged, so whoever holds the function sees the change.
    """
    function = inspect.unwrap(_find(mutant.function))
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(mutant.old) == 1, f"{mutant.old!r} is not once in {mutant.function}"
    text = source[source.index("def ") :].replace(mutant.old, mutant.new)
    module = compile("from __future__ import annotations\n" + text, str(mutant), "exec")
    (code,) = (c for c in module.co_consts if isinstance(c, CodeType))
    kept, function.__code__ = function.__code__, code
    try:
        yield
    finally:
        function.__code__ = kept


def _find(path: str) -> FunctionType:
    module, _, name = path.partition(":")
    found: object = import_module(f"smelt.{module}")
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, Rule):
        found = found.build
    if isinstance(found, Pass):
        found = found.body
    assert isinstance(found, FunctionType)
    return found
