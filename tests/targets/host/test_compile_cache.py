"""A program that an earlier process compiled is loaded without planning, if it is surely the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from smelt.ir import text
from smelt.program.instruction import Program
from smelt.runtime.jit import cache_key
from smelt.runtime.jit.cache import Cache
from smelt.targets.base import Plan
from smelt.targets.host import compile_cache, host, phases, static_programs
from smelt.targets.host.compile_cache import CachedLibrary, note_name, read_note
from smelt.targets.host.options import Options
from smelt.targets.host.static_programs import compile_program

SCALED = "g (float[4,5] x) => (y) {{ c = Constant<value_floats=[{factor}]>() y = Mul(x, c) }}"
X = np.arange(20, dtype=np.float32).reshape(4, 5)

Planned = Callable[[], list[Program]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SMELT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Record every program that is planned."""
    seen: list[Program] = []
    plan = static_programs.planned

    def watched(program: Program, *more: object) -> Program:
        seen.append(program)
        return plan(program, *more)

    monkeypatch.setattr(static_programs, "planned", watched)
    return seen


def program(factor: float = 2.0) -> Program:
    plan = Plan(text.parse(SCALED.format(factor=factor)), Options(engine="native"))
    host.schedule(plan)
    return plan.steps.compiled.program


def test_another_process_has_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a note must not contain addresses, such as that of a freshly imported BLAS
    module.
    """
    names, held = set(), []
    for _ in range(3):
        monkeypatch.delitem(sys.modules, "scipy_openblas32", raising=False)
        names.add(note_name(program(), 1))
        held.append(find_spec("scipy_openblas32"))
    assert len(names) == 1


def check(factor: float, **options: int) -> None:
    call = compile_program(program(factor), **options)
    assert call is not None
    results = call(X)
    assert results is not None
    np.testing.assert_array_equal(results[0], factor * X)


def test_a_cached_program_is_not_planned(planned: list[Program]) -> None:
    check(2.0)
    check(2.0)
    assert len(planned) == 1


def test_a_cached_program_is_not_prepared_for_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Program] = []
    monkeypatch.setattr(phases, "prepare", prepared.append)
    for _ in range(2):
        plan = Plan(text.parse(SCALED.format(factor=2.0)), Options(engine="native"))
        host.schedule(plan)
        host.allocate(plan)
        (result,) = host.emit(plan)(X)
        np.testing.assert_array_equal(result, 2 * X)
    assert len(prepared) == 1


def test_other_constants_are_another_program(planned: list[Program]) -> None:
    check(2.0)
    check(3.0)
    check(2.0)
    assert len(planned) == 2


def test_other_thread_counts_and_versions_are_another_program(
    planned: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(2.0)
    check(2.0, threads=2)
    monkeypatch.setattr(cache_key, "package_digest", lambda: "after an update")
    check(2.0)
    assert len(planned) == 3


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"key": "k"}', '{"weights": [["f4", [9], "00"]]}']
)
def test_a_damaged_note_is_ignored(cache: Path, planned: list[Program], damage: str) -> None:
    check(2.0)
    (note,) = cache.glob("*.note")
    note.write_text(damage)
    assert read_note(program(), 1) is None
    check(2.0)
    assert len(planned) == 2


def test_a_deleted_library_is_built_again(cache: Path, planned: list[Program]) -> None:
    check(2.0)
    known = read_note(program(), 1)
    assert known is not None
    for file in (cache / known.key).iterdir():
        file.unlink()
    check(2.0)
    assert len(planned) == 2


def test_programs_with_large_constants_are_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_cache, "MOST_CONSTANTS", 3)
    check(2.0)
    assert Cache().has_note(note_name(program(), 1))
    assert read_note(program(), 1) is None


def test_a_note_survives_its_text_form() -> None:
    weights = (np.float32([[1, np.nan], [-0.0, np.inf]]), np.zeros((0, 3), np.int8))
    before = CachedLibrary("k", 64, True, False, True, weights)
    after = CachedLibrary.from_text(before.to_text())
    for x, y in zip(before.weights, after.weights, strict=True):
        assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())
    assert (after.key, after.memory_bytes, after.is_short) == ("k", 64, True)
    assert (after.calls_blas, after.has_parts) == (False, True)
