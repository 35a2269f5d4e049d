"""Sizes at which a model runs, where it fails at those that were made up.

Sizes may not go together: the mask of a decoder with a cache is as long as what is cached and what
is new, and no type says that this dim is a sum. They may be too small: five strided convolutions
need a long waveform. Or there is one that fits: a Flatten before a Gemm. So a dim is taken for
another, for one more or for two together, at sizes that climb; those that the graph rules out
(``size_demands.py``) are not run, and whatever runs first is kept.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import onnx_ir as ir

from smelt.errors import InvalidModel, SmeltError
from smelt.runtime.interface import Interface
from smelt.runtime.named_inputs import Chosen
from smelt.runtime.size_demands import are_met, demands_of

Sizes = Mapping[str, int]
Result = TypeVar("Result")

TRIED = 64
"""Guesses at most: models fail early at sizes that do not fit, but each one is a run."""

CLIMB = (8, 32, 128, 512, 2048)
"""Lengths that are tried where small ones fail; first the multiples of what halves an image."""

EVERY = 256
"""Up to this length every number is tried, if the graph says which to run."""

SECONDS = 10.0
"""Time after which no further sizes are looked for."""


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
    model: ir.Model | None = None,
) -> list[dict[str, int]]:
    """``trials``, or where ``run`` fails at the last of them, sizes at which it ends well.

    Dims that are ``given`` stay. The last of ``trials`` should have a size of its own for each dim:
    a model may run at ones and still say nothing of other sizes, for what is 1 broadcasts. The
    others get further lengths at which it ends well. ``model`` is what is run, if that is known.
    """
    if not interface.symbols() or _runs(run, trials[-1]):
        return list(trials)
    for guess in itertools.islice(guesses(interface, given), TRIED):
        guessed = [guess.at(sizes) for sizes in trials]
        if _runs(run, guessed[-1]):
            return guessed
    found = climb(interface, trials[-1], given, run, model)
    first = next(found, None)
    if first is None:
        return list(trials)
    others = itertools.chain(itertools.islice(found, 1), itertools.repeat(first))
    batch = _leading(interface) - set(first.lengths)
    again = [
        {**next(others).sizes, **{name: sizes[name] for name in batch if name in sizes}}
        for sizes in trials[:-1]
    ]
    return [*again, dict(first.sizes)]


def _runs(run: Callable[[Sizes], object], sizes: Sizes) -> bool:
    try:
        run(sizes)
    except SmeltError:
        return False
    return True


@dataclass(frozen=True)
class Found:
    """``sizes`` at which a model runs; ``lengths`` are the dims that had to be changed."""

    sizes: dict[str, int]
    lengths: tuple[str, ...]


def climb(
    interface: Interface,
    base: Sizes,
    given: Collection[str],
    run: Callable[[Sizes], object],
    model: ir.Model | None = None,
) -> Iterator[Found]:
    """Sizes at which ``run`` ends well, the smallest first, within ``SECONDS``.

    Sizes that the graph of ``model`` rules out are not run.
    """
    deadline = time.monotonic() + SECONDS
    demands = demands_of(model) if model is not None else []
    lengths = CLIMB if model is None else (*CLIMB, *range(1, EVERY))
    tried = 0
    for found in _candidates(interface, base, given, lengths):
        if tried == TRIED or time.monotonic() > deadline:
            return
        if are_met(demands, found.sizes):
            tried += 1
            if _runs(run, found.sizes):
                yield found


def _candidates(
    interface: Interface, base: Sizes, given: Collection[str], lengths: Sequence[int]
) -> Iterator[Found]:
    """``base`` with all dims but those that count samples of one length, then with these too, then
    with a single dim of that length; sums on top of each."""
    free = [name for name in interface.symbols() if name not in given]
    inner = tuple(name for name in free if name not in _leading(interface))
    whole = [names for names in dict.fromkeys((inner, tuple(free))) if names]
    groups = [*whole, *((name,) for name in free if len(free) > 1)]
    guessed = list(itertools.islice(guesses(interface, given), TRIED))
    for names, length in itertools.product(groups, lengths):
        sizes = {**base, **dict.fromkeys(names, length)}
        yield Found(sizes, names)
        if length in CLIMB:
            for guess in guessed:
                other = guess.at(sizes)
                if other != sizes:
                    yield Found(other, names)


def _leading(interface: Interface) -> set[str]:
    """The dims that count samples: the first of each input."""
    first = [port.shape[0] for port in interface.inputs if port.shape]
    return {str(dim.value) for dim in first if isinstance(dim, ir.SymbolicDim)}


def run_fitting(
    interface: Interface,
    choose: Callable[[Sizes], Chosen],
    sizes: Sizes,
    run: Callable[[Chosen], Result],
    model: ir.Model | None = None,
) -> tuple[Result, Chosen]:
    """What ``run`` makes of the inputs that ``choose`` gives at ``sizes``, and the inputs.

    Where the model fails as it runs, those of the first sizes at which it does not. Raises the
    first error if there are none.
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
        ended: list[tuple[Result, Chosen]] = []

        def attempt(at: Sizes) -> None:
            fitted = choose({**sizes, **at})
            ended.append((run(fitted), fitted))

        if next(climb(interface, chosen.sizes, sizes, attempt, model), None) is not None:
            return ended[-1]
        raise


def guesses(interface: Interface, given: Collection[str] = ()) -> Iterator[Guess]:
    """What dims of inputs that are not ``given`` may be to others, the plainest first.

    The first dim of an input counts its samples, so it is no part of a length. Dims without a name
    stand alone.
    """
    unnamed = frozenset().union(*(port.unnamed for port in interface.inputs))
    leading = _leading(interface)
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
