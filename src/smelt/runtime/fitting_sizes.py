"""Sizes at which a model runs, where sizes that know nothing of each other do not go together.

The mask of a decoder with a cache is as long as what is cached and what is new: an exporter calls
that a dim of its own, and no type says that it is a sum. So where a model fails, one of its dims is
taken for another, for one more, or for two together, and whatever runs first is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import onnx_ir as ir

from smelt.errors import InvalidModel, SmeltError
from smelt.runtime.interface import Interface
from smelt.runtime.named_inputs import Chosen

Sizes = Mapping[str, int]
Result = TypeVar("Result")

TRIED = 64
"""Guesses at most: models fail early at sizes that do not fit, but each one is a run."""


@dataclass(frozen=True)
class Guess:
    """The dim ``name`` is the sum of ``parts`` and ``more`` without ``less``."""

    name: str
    parts: tuple[str, ...]
    more: int = 0
    less: tuple[str, ...] = ()

    def at(self, sizes: Sizes) -> dict[str, int]:
        """``sizes`` as they are if the guess is right."""
        total = sum(sizes[part] for part in self.parts) + self.more
        return {**sizes, self.name: max(total - sum(sizes[part] for part in self.less), 0)}


def fitting(
    interface: Interface,
    trials: Sequence[dict[str, int]],
    given: Collection[str],
    run: Callable[[Sizes], object],
) -> list[dict[str, int]]:
    """``trials``, or where ``run`` fails at the last of them, as the first guess changes them at
    which it ends well.

    Dims that are ``given`` stay. The last of ``trials`` should have a size of its own for each dim:
    a model may run at ones and still say nothing of other sizes, for what is 1 broadcasts. Raises
    what ``run`` raises unless it is an error of smelt.
    """
    found = tuple(itertools.islice(guesses(interface, given), TRIED))
    for guess in (None, *found) if found else ():
        guessed = [guess.at(sizes) if guess else sizes for sizes in trials]
        try:
            run(guessed[-1])
        except SmeltError:
            continue
        return guessed
    return list(trials)


def run_fitting(
    interface: Interface,
    choose: Callable[[Sizes], Chosen],
    sizes: Sizes,
    run: Callable[[Chosen], Result],
) -> tuple[Result, Chosen]:
    """What ``run`` makes of the inputs that ``choose`` gives at ``sizes``, and the inputs.

    Where the model fails as it runs, those of the first guess at which it does not. Raises the
    first error if there is none.
    """
    chosen = choose(sizes)
    try:
        return run(chosen), chosen
    except InvalidModel as error:
        if error.code != "E321":
            raise
        for guess in itertools.islice(guesses(interface, sizes), TRIED):
            with suppress(SmeltError):  # arrays that are given may bind the dim, too
                fitted = choose({**sizes, guess.name: guess.at(chosen.sizes)[guess.name]})
                return run(fitted), fitted
        raise


def guesses(interface: Interface, given: Collection[str] = ()) -> Iterator[Guess]:
    """What dims of inputs that are not ``given`` may be to others, the plainest first.

    The first dim of an input counts its samples, so it is no part of a length. Dims without a name
    stand alone.
    """
    unnamed = frozenset().union(*(port.unnamed for port in interface.inputs))
    leading = {_symbol(port.shape[0]) for port in interface.inputs if port.shape}
    lengths = [name for name in interface.symbols() if name not in unnamed | leading]
    free = [name for name in lengths if name not in given]
    for name, other in itertools.product(free, lengths):
        if name != other:
            yield Guess(name, (other,))
    for name, other in itertools.product(free, lengths):
        if name != other:
            yield Guess(name, (other,), 1)
    for name in free:
        for parts in itertools.combinations([other for other in lengths if other != name], 2):
            yield Guess(name, parts)
    for name in free:
        for whole, part in itertools.permutations([n for n in lengths if n != name], 2):
            yield Guess(name, (whole,), less=(part,))


def _symbol(dim: int | ir.SymbolicDim) -> str | None:
    return dim.value if isinstance(dim, ir.SymbolicDim) else None
