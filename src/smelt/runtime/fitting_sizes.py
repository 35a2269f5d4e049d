"""Find sizes of symbolic dims at which a model runs, if it fails at the default sizes.

Sizes may depend on each other: the mask of a decoder with a cache is as long as cached plus new
tokens, which no type states. Sizes may be too small, as for five strided convolutions. Or only one
size may fit, as for a Flatten before a Gemm. So the search tries each dim as equal to another dim,
one more, or the sum or difference of two, and growing lengths. It skips sizes that the graph rules
out (``size_demands.py``), and ends at the first sizes at which the model runs.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import onnx_ir as ir

from smelt.errors import InvalidModel, SmeltError, UsageError
from smelt.ir.symbolic_dims.size_constraints import broken_by
from smelt.runtime.interface import Interface
from smelt.runtime.named_inputs import Chosen
from smelt.runtime.size_demands import are_met, demands_of

Sizes = Mapping[str, int]
Result = TypeVar("Result")

MOST_RUNS = 64
"""The most runs of a search; a run fails early at misfitting sizes."""

LENGTHS = (8, 32, 128, 512, 2048)
"""Lengths to try if small ones fail; multiples of 8 fit networks that halve an image."""

EVERY_LENGTH_BELOW = 256
"""All lengths below this are tried, too, if the graph is known, which rules most of them out."""

SECONDS = 10.0
"""Seconds after which the search ends."""


@dataclass(frozen=True)
class Guess:
    """The guess that dim ``name`` equals the sum of ``parts``, plus ``more``, minus ``less``.

    ``parts`` and ``less`` are names of other dims.
    """

    name: str
    parts: tuple[str, ...]
    more: int = 0
    less: tuple[str, ...] = ()

    def at(self, sizes: Sizes) -> dict[str, int]:
        """Return ``sizes`` with the guessed dim computed from the others."""
        total = sum(sizes[part] for part in self.parts) + self.more
        return {**sizes, self.name: max(total - sum(sizes[part] for part in self.less), 0)}


def fitting(
    interface: Interface,
    trials: Sequence[dict[str, int]],
    fixed_names: Collection[str],
    run: Callable[[Sizes], object],
    model: ir.Model | None = None,
) -> list[dict[str, int]]:
    """Return ``trials``, one dict of sizes each, if ``run`` succeeds at the last one; else as many
    dicts of sizes at which it succeeds.

    First one dim at a time is guessed from the others, for all trials alike. Then all dims grow
    together: the last trial gets the smallest sizes that succeed, and earlier ones get these or
    larger ones, with their own batch sizes. ``fixed_names`` keep their sizes. The last trial should
    have a different size for each dim, because size 1 broadcasts and so hides dependences.
    ``model`` is the model that is run, if known. Without sizes that fit, ``trials`` are returned.
    """
    are_allowed = not any(_broken(interface, sizes) for sizes in trials)
    if not interface.symbols() or (are_allowed and _runs(run, trials[-1])):
        return list(trials)
    for guess in itertools.islice(guesses(interface, fixed_names), MOST_RUNS):
        guessed = [guess.at(sizes) for sizes in trials]
        if not any(_broken(interface, sizes) for sizes in guessed) and _runs(run, guessed[-1]):
            return guessed
    successes = sizes_that_run(interface, trials[-1], fixed_names, run, model)
    smallest = next(successes, None)
    if smallest is None:
        return list(trials)
    sizes_of_trials = itertools.chain(itertools.islice(successes, 1), itertools.repeat(smallest))
    batch_dims = _leading(interface) - set(smallest.lengths)
    earlier = [
        {
            **next(sizes_of_trials).sizes,
            **{name: sizes[name] for name in batch_dims if name in sizes},
        }
        for sizes in trials[:-1]
    ]
    return [*(sizes for sizes in earlier if not _broken(interface, sizes)), dict(smallest.sizes)]


def _broken(interface: Interface, sizes: Sizes) -> str:
    """Return the constraint of the model that ``sizes`` break, "" if they break none."""
    return broken_by(interface.check.constraints, sizes) if interface.check is not None else ""


def _runs(run: Callable[[Sizes], object], sizes: Sizes) -> bool:
    """True if ``run`` succeeds at ``sizes``."""
    try:
        run(sizes)
    except SmeltError:
        return False
    return True


@dataclass(frozen=True)
class FittingSizes:
    """``sizes`` at which a model runs; ``lengths`` are the dims that were changed."""

    sizes: dict[str, int]
    lengths: tuple[str, ...]


def sizes_that_run(
    interface: Interface,
    base: Sizes,
    fixed_names: Collection[str],
    run: Callable[[Sizes], object],
    model: ir.Model | None = None,
) -> Iterator[FittingSizes]:
    """Yield sizes at which ``run`` succeeds, smallest first.

    The search ends after ``MOST_RUNS`` runs or ``SECONDS``. Sizes that the graph of ``model`` rules
    out are not run, and do not count.
    """
    deadline = time.monotonic() + SECONDS
    demands = demands_of(model) if model is not None else []
    lengths = LENGTHS if model is None else (*LENGTHS, *range(1, EVERY_LENGTH_BELOW))
    tried = 0
    for candidate in _candidates(interface, base, fixed_names, lengths):
        if tried == MOST_RUNS or time.monotonic() > deadline:
            return
        if are_met(demands, candidate.sizes) and not _broken(interface, candidate.sizes):
            tried += 1
            if _runs(run, candidate.sizes):
                yield candidate


def _candidates(
    interface: Interface, base: Sizes, fixed_names: Collection[str], lengths: Sequence[int]
) -> Iterator[FittingSizes]:
    """Yield ``base`` with a group of dims set to each of ``lengths``.

    The groups are all dims but the leading ones, then all dims, then each single dim. Sizes with a
    length of ``LENGTHS`` are followed by the same sizes with one dim changed, by each guess.
    """
    free = [name for name in interface.symbols() if name not in fixed_names]
    inner = tuple(name for name in free if name not in _leading(interface))
    whole = [names for names in dict.fromkeys((inner, tuple(free))) if names]
    groups = [*whole, *((name,) for name in free if len(free) > 1)]
    guessed = list(itertools.islice(guesses(interface, fixed_names), MOST_RUNS))
    for names, length in itertools.product(groups, lengths):
        sizes = {**base, **dict.fromkeys(names, length)}
        yield FittingSizes(sizes, names)
        if length in LENGTHS:  # guesses at every length would use up the runs
            for guess in guessed:
                other = guess.at(sizes)
                if other != sizes:
                    yield FittingSizes(other, names)


def _leading(interface: Interface) -> set[str]:
    """Return the leading dim of each input, which counts samples."""
    first = [port.shape[0] for port in interface.inputs if port.shape]
    return {str(dim.value) for dim in first if isinstance(dim, ir.SymbolicDim)}


def run_fitting(
    interface: Interface,
    choose: Callable[[Sizes], Chosen],
    sizes: Sizes,
    run: Callable[[Chosen], Result],
    model: ir.Model | None = None,
) -> tuple[Result, Chosen]:
    """Run the inputs that ``choose`` returns at ``sizes``; return the result and the inputs.

    If the model fails at run time, try other sizes, and use the first at which it runs: first
    guesses of one dim, then growing lengths of all dims. Raises the first error if there are none.
    """
    chosen = choose(sizes)
    try:
        return run(chosen), chosen
    except (InvalidModel, UsageError) as error:
        if error.code not in ("E321", "E670"):
            raise
        for guess in itertools.islice(guesses(interface, sizes), MOST_RUNS):
            with suppress(SmeltError):  # the user's arrays may bind the dim to another size
                guessed_size = guess.at(chosen.sizes)[guess.name]
                fitted = choose({**sizes, guess.name: guessed_size})
                return run(fitted), fitted
        successes: list[tuple[Result, Chosen]] = []

        def attempt(at: Sizes) -> None:
            """Run at the sizes ``at``, and record the result."""
            fitted = choose({**sizes, **at})
            successes.append((run(fitted), fitted))

        if next(sizes_that_run(interface, chosen.sizes, sizes, attempt, model), None) is not None:
            return successes[-1]
        raise


def guesses(interface: Interface, fixed_names: Collection[str] = ()) -> Iterator[Guess]:
    """Yield guesses of how dims depend on others, simplest first; ``fixed_names`` are not guessed.

    The leading dim of an input counts samples, so it takes no part. Unnamed dims take no part,
    either.
    """
    unnamed = frozenset().union(*(port.unnamed for port in interface.inputs))
    leading = _leading(interface)
    lengths = [name for name in interface.symbols() if name not in unnamed | leading]
    free = [name for name in lengths if name not in fixed_names]
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
