"""Private names of libraries stand in one place a library, and are there.

If a new release of a library fails here, the failures name what has moved: see
``docs/moving-to-a-new-jax.md``.
"""

from __future__ import annotations

import pytest
from private_names import JAX, OBJECTS, PLACES, SOURCE, is_there, jax_names, private_uses

JAX_NAMES = [
    name for path in JAX for name in jax_names((SOURCE / path).read_text(encoding="utf-8"))
]

HARMLESS = {"_replace", "_asdict", "_fields"}
"""Public in spite of the underscore: of named tuples."""


@pytest.mark.parametrize("name", JAX_NAMES)
def test_jax_has(name: str) -> None:
    assert is_there(name), f"JAX has moved {name}, which one of {JAX} takes"


@pytest.mark.parametrize("name", OBJECTS)
def test_a_library_has(name: str) -> None:
    owner, attribute = OBJECTS[name]
    places = PLACES[name.partition(".")[0]]
    assert hasattr(owner(), attribute), f"{name} has moved, which src/smelt/{places} takes"


def test_functions_that_something_stands_in_for_are_there() -> None:
    from smelt.frontends.jax.patching.library_functions import ALL

    gone = [function.target for function in ALL if not is_there(function.target)]
    assert not gone, "moved: traces take longer until library_functions.py follows"


def test_missing_private_names_are_listed() -> None:
    names = jax_names("from jax._src import core as c, gone\nc.no_such_function(gone.x)")
    missing = [name for name in names if not is_there(name)]
    assert missing == ["jax._src:gone", "jax._src.core:no_such_function", "jax._src.gone:x"]


def test_private_names_stand_in_their_places_only() -> None:
    allowed = {place for places in PLACES.values() for place in places}
    strays = {(f, name) for f, name in private_uses() if f not in allowed and name not in HARMLESS}
    assert not strays
    for file in allowed:
        assert (SOURCE / file).exists()
