"""A name has one owner, who may declare it again; what nobody asks for is not loaded."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from smelt.errors import UsageError
from smelt.frontends.jax.patching.patches import PATCHES
from smelt.frontends.jax.registry import RULES
from smelt.native.kernels.kernel import KERNELS as C_KERNELS
from smelt.operators.registry import OPERATORS
from smelt.passes.registry import PASSES
from smelt.program.lower.registry import LOWERINGS
from smelt.registry import Owner, Registry, owner_of
from smelt.targets.host.kernels.kernel import KERNELS as HOST_KERNELS
from smelt.targets.host.kernels.kernel import VIEWS
from smelt.targets.registry import TARGETS

EVERY: dict[str, Registry[Any, Any]] = {
    "operators": OPERATORS,
    "passes": PASSES,
    "targets": TARGETS,
    "lowerings": LOWERINGS,
    "lowerings of JAX": RULES,
    "patches": PATCHES,
    "kernels of c": C_KERNELS,
    "kernels of host": HOST_KERNELS,
    "views of host": VIEWS,
}


def of(fill: Callable[[], object] = lambda: None) -> Registry[str, int]:
    return Registry("E651", lambda name: f"things called {name}", fill)


@pytest.mark.parametrize("kind", EVERY)
def test_a_clash_names_both_owners(kind: str) -> None:
    registry = EVERY[kind]
    with registry.refilled():
        name = next(iter(registry))
        with pytest.raises(UsageError) as caught:
            registry.add(name, object(), Owner("theirs.module", "theirs 1.0"))
    assert caught.value.at == (str(registry.owner(name)), "theirs.module (package theirs 1.0)")
    assert str(registry.owner(name)).startswith("smelt.")


@pytest.mark.parametrize("kind", EVERY)
def test_the_same_owner_replaces_its_own(kind: str) -> None:
    registry = EVERY[kind]
    name = next(iter(registry))
    before, new = registry[name], object()
    with registry.refilled():
        registry.add(name, new, registry.owner(name))
        assert registry[name] is new
    assert registry[name] is before


CELL = """
from smelt.targets.host.kernels.kernel import kernel
@kernel("example::Notebook")
def prepare(call):
    return {step}
"""


def test_a_cell_that_runs_again_replaces_what_it_declared() -> None:
    cell: dict[str, Any] = {"__name__": "__main__"}
    with HOST_KERNELS.refilled():
        for step in (1, 2):
            exec(CELL.format(step=step), cell)
        assert HOST_KERNELS["example::Notebook"](None) == 2
        cell["__name__"] = "another"
        with pytest.raises(UsageError) as caught:
            exec(CELL.format(step=3), cell)
    assert caught.value.at == ("__main__.prepare", "another.prepare")


def test_it_is_filled_once_when_it_is_asked_and_may_look_meanwhile() -> None:
    seen = []

    def fill() -> None:
        seen.append("b" in registry)
        registry.add("a", 1, Owner("here"))
        seen.append(registry.get("a") == 1)

    registry = of(fill)
    registry.add("b", 2, Owner("here"))
    assert seen == []
    assert sorted(registry) == ["a", "b"]
    assert (len(registry), registry["a"], "c" in registry, seen) == (2, 1, False, [True, True])


def test_a_failed_fill_is_tried_again() -> None:
    def fill() -> None:
        attempts.append(1)
        if len(attempts) == 1:
            raise UsageError("E641", "no operator")

    attempts: list[int] = []
    registry = of(fill)
    with pytest.raises(UsageError, match="no operator"):
        registry.get("a")
    assert registry.get("a") is None


def test_threads_wait_for_whoever_fills() -> None:
    started, asked, found = threading.Event(), threading.Event(), []

    def fill() -> None:
        started.set()
        asked.wait()
        time.sleep(0.02)  # the other thread is at the lock by now, or will find it taken
        registry.add("a", 1, Owner("here"))

    def ask() -> None:
        asked.set()
        found.append(registry.get("a"))

    registry = of(fill)
    other = threading.Thread(target=ask)
    filling = threading.Thread(target=lambda: registry.get("a"))
    filling.start()
    started.wait()
    other.start()
    filling.join()
    other.join()
    assert found == [1]


def test_late_entries_are_loaded_once_on_demand() -> None:
    def load() -> int:
        loads.append(1)
        return 7

    loads: list[int] = []
    registry = of()
    registry.add_late("a", load, Owner("here"))
    assert list(registry) == ["a"]
    assert loads == []
    assert [registry["a"], registry["a"]] == [7, 7]
    assert loads == [1]


def test_entries_that_fail_to_load_raise_each_time_and_block_no_others() -> None:
    def load() -> int:
        raise UsageError("E615", "it cannot be loaded")

    registry = of()
    registry.add_late("a", load, Owner("here"))
    registry.add("b", 2, Owner("here"))
    for _ in range(2):
        with pytest.raises(UsageError, match="cannot be loaded"):
            registry["a"]
    assert registry["b"] == 2


def test_the_same_thing_again_is_no_news() -> None:
    registry = of()
    assert registry.add("a", 1000, Owner("here"))
    assert not registry.add("a", registry["a"], Owner("there"))


def test_an_owner_is_a_module_and_a_name_in_it() -> None:
    assert str(owner_of(test_an_owner_is_a_module_and_a_name_in_it)).endswith(
        "test_registry.test_an_owner_is_a_module_and_a_name_in_it"
    )
    assert Owner("a:b", "p 1.0") == Owner("a:b", "p 2.0")


def test_nothing_is_imported_before_somebody_asks() -> None:
    import subprocess

    code = (
        "import sys, smelt.targets.registry as t, smelt.native.kernels, smelt.program.lower\n"
        "t.target_names()\n"
        "late = ('smelt.targets.c', 'smelt.native.kernels.conv', 'smelt.program.lower.movement')\n"
        "assert not sys.modules.keys() & set(late)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
