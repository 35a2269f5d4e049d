"""Mistakes are drawn from code alone, each is one expression, and marks tell which block runs."""

from __future__ import annotations

import ast

import pytest
from mutants.blocks import RECORD, block_of, marked
from mutants.nearest import ROOT, TABLES, imports, nearest, room
from mutants.sites import mutated, shown, sites

MISTAKES = {
    "if a is None:\n    return": [
        "guard off: a is None -> False",
        "negated: a is None -> a is not None",
    ],
    "if a:\n    b()": ["branch off: a -> False"],
    "x = a < b": ["end moved: a < b -> a <= b", "negated: a < b -> a >= b"],
    "x = a and not b": ["and/or: a and (not b) -> a or not b", "not dropped: not b -> b"],
    "x = a // b": ["swapped: a // b -> b // a"],
    "x = a - b": ["sign: a - b -> a + b", "swapped: a - b -> b - a"],
    "x = a + b": ["sign: a + b -> a - b"],
    "x = [a for a in b if a]": ["filter off: a -> True"],
    "x = y[0]": ["off by one: 0 -> 1"],
    "x = 'a' + b": [],
    "x = True": [],
    "assert a == 1": [],
    "@lru_cache(maxsize=64)\ndef f(): pass": [],
    "if TYPE_CHECKING:\n    a = 1": [],
    "def f(a: Literal[1]) -> Literal[2]: pass": [],
    "match a:\n    case 1: pass": [],
}


@pytest.mark.parametrize("source", MISTAKES, ids=repr)
def test_mistakes(source: str) -> None:
    found = sites(source, "a.py")
    assert sorted(f"{site.kind}: {shown(source, site)}" for site in found) == MISTAKES[source]
    for site in found:
        assert ast.unparse(mutated(source, site)) != ast.unparse(ast.parse(source))


def test_a_mark_is_set_by_what_runs() -> None:
    source = "def f(x):\n    '''text'''\n    if x:\n        return 1\n    y = 2\n    return y\n"
    tree, count = marked(ast.parse(source))
    scope: dict[str, object] = {RECORD: bytearray(count)}
    exec(compile(tree, "a.py", "exec"), scope)
    for argument, lines in ((True, {3, 4}), (False, {3, 5, 6})):
        scope[RECORD][:] = bytes(count)
        scope["f"](argument)
        ran = {line for line in range(3, 7) if scope[RECORD][block_of(ast.parse(source), line)]}
        assert ran == lines
    assert scope["f"].__doc__ == "text"
    assert block_of(ast.parse(source), 1) is None


def test_tests_near_a_module_mirror_or_import_it() -> None:
    assert nearest("smelt.ir.index")[0] == "tests/ir/test_index.py"
    assert nearest("smelt.passes.simplify.slices_to_split")[0] == (
        "tests/passes/simplify/test_slices_to_split.py"
    )
    assert nearest("smelt.passes.norms.moments"), "those of its readers"
    assert "tests/native/test_emitted.py" in nearest("smelt.native.emit.writer")[:2]
    assert "tests/operators/test_bodies.py" in nearest("smelt.operators.linalg.lu")[:2]
    assert all((ROOT / file).is_file() for file in TABLES)
    assert room("smelt.frontends.jax.plugins.linalg.qr").parts[-2:] == ("frontends", "jax")
    assert imports("from smelt.ir import (\n    scope,\n    text,\n)", "smelt.ir.text")
    assert not imports("from smelt.ir.text import parse", "smelt.ir")
