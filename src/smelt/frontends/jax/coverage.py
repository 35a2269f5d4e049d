"""Tables for the docs: the JAX primitives with a lowering, by family, and those without one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from smelt.frontends.jax import compat, prng, references, registry
from smelt.frontends.jax.complex_numbers import rules
from smelt.frontends.jax.support import REFUSED


@dataclass(frozen=True)
class Family:
    """The primitives that one module lowers; ``summary`` is the first line of its docstring."""

    name: str
    summary: str
    primitives: tuple[str, ...]


def families() -> tuple[Family, ...]:
    """Return all families sorted by name: our plugins, then references, keys and complex numbers.

    Lowerings of other installed packages are left out, so the result is the same everywhere.
    """
    owned: dict[str, list[str]] = {}
    for primitive in sorted(registry.RULES):
        owner = registry.RULES.owner(primitive).place
        if owner.startswith("smelt.frontends.jax.plugins."):
            owned.setdefault(owner, []).append(primitive)
    from_plugins = [
        Family(_last_name(module), _summary(module), tuple(owned[module])) for module in owned
    ]
    from_plugins.sort(key=lambda family: family.name)
    keys, complex_ = "smelt.frontends.jax.keys", "smelt.frontends.jax.complex_numbers"
    stateful = "smelt.frontends.jax.references"
    return (
        *from_plugins,
        Family("references", _summary(stateful), references.ON_REFERENCES),
        Family("keys", _summary(keys), tuple(sorted(prng.ON_KEYS))),
        Family("complex_numbers", _summary(complex_), rules.names()),
    )


def missing() -> dict[str, str]:
    """Return the public primitives of JAX without a lowering, each with the reason.

    The reason is empty if smelt states none.
    """
    covered = {name for family in families() for name in family.primitives}
    names = sorted({*compat.primitive_names(), *REFUSED} - covered)
    return {name: REFUSED[name][0] if name in REFUSED else "" for name in names}


def counts() -> tuple[int, int]:
    """Return how many public primitives of JAX have a lowering, and how many there are."""
    public_names = set(compat.primitive_names())
    return len(public_names - set(missing())), len(public_names)


def _last_name(module: str) -> str:
    """Return the last name of a dotted module name."""
    return module.rpartition(".")[2]


def _summary(module: str) -> str:
    """Return the first line of the module's docstring."""
    return next(_lines(import_module(module).__doc__ or ""), "")


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of ``text`` that are not blank."""
    yield from (line.strip() for line in text.splitlines() if line.strip())
