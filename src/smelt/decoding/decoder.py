"""Generate tokens by a decoder, from the tokens of a prompt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smelt.compiler import Source
from smelt.decoding.merged import parts_of
from smelt.decoding.program import PROMPT_TOKENS, FirstProgram, Program, network_of
from smelt.decoding.room import refuse_small_cache, room_of
from smelt.decoding.sampling import Sampler, sampling_of
from smelt.decoding.state import Array, State
from smelt.decoding.weights import read_weights
from smelt.errors import UsageError, did_you_mean, listed

PADDING = -1
"""The token before a shorter prompt, and after the end of a sequence."""

Ids = Sequence[int] | Sequence[Sequence[int]] | Array


class Decoder:
    """A decoder that is compiled for this machine and keeps its caches from token to token.

    ``model`` is an exported step: tokens, pasts, and optionally a mask and positions, become logits
    and the pasts of the next step. Without a past, each step computes all tokens again. ``first``
    computes the prompt if ``model`` takes one token a call; without it, the prompt takes a call for
    each token. A merged decoder, with a bool input that chooses a branch, has both in one file.
    ``inputs`` are the arrays of further inputs, such as the states of an encoder. ``weights`` is a
    GGUF file or a checkpoint, whose tensors replace the weights of the models; ``notes`` say what
    became of quantized ones.
    """

    def __init__(
        self,
        model: Source,
        first: Source | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        weights: str | Path | None = None,
        threads: int = 1,
    ) -> None:
        """Read and optimize the models; they are compiled by the first call of ``generate``.

        Raises UsageError E801 for a model that is not a decoder, E805 for ``weights`` that do not
        fit, and what ``smelt.load`` raises.
        """
        given = {name: np.asarray(value) for name, value in (inputs or {}).items()}
        self._constants = given
        tensors = None if weights is None else read_weights(weights)
        step, own_first = parts_of(model)
        prompt = own_first if first is None else first
        self._first = (
            None if prompt is None else network_of(prompt, given, is_first=True, weights=tensors)
        )
        carried = () if self._first is None else self._first.outputs
        self._step = network_of(step, given, carried, weights=tensors)
        self.notes = self._step.notes
        networks = [self._step] if self._first is None else [self._step, self._first]
        known = {value.name for each in networks for value in each.model.graph.inputs}
        for name in self._constants:
            if name not in known:
                others = sorted(name for name in known if name is not None)
                raise UsageError(
                    "E804",
                    f"the decoder has no input {name!r}",
                    why=f"its inputs are {listed(others, 6)}",
                    fix=did_you_mean(name, others, "leave it out"),
                )
        self._threads = threads
        self._programs: dict[int, tuple[Program, Program]] = {}
        self._room: int | None = 0

    def generate(
        self,
        ids: Ids,
        max_new_tokens: int = 64,
        *,
        stop: Collection[int] = (),
        on_token: Callable[[Array], object] | None = None,
        **sampling: Any,
    ) -> Any:
        """Return the new tokens after the prompt ``ids``, without the prompt.

        The tokens of one prompt give int64[N]; a list of prompts, or an array of rank 2, gives a
        list of such arrays. A sequence ends after a token of ``stop`` or ``max_new_tokens`` tokens.
        ``on_token`` is called with the new tokens of each step, int64[B], -1 for ended sequences.
        ``sampling`` are the fields of ``Sampling``; by default the most likely token is taken.
        Raises UsageError E802 for values that are not allowed, and E803 for prompts that are empty
        or no tokens.
        """
        prompts, is_one = self._prompts(ids)
        steps = [
            np.stack(list(self._stream(group, max_new_tokens, stop, on_token, sampling)), axis=1)
            for group in self._groups(prompts)
        ]
        rows = [row[row != PADDING] for group in steps for row in group]
        return rows[0] if is_one else rows

    def stream(
        self, ids: Ids, max_new_tokens: int = 64, *, stop: Collection[int] = (), **sampling: Any
    ) -> Iterator[int]:
        """Yield the new tokens after one prompt, each as soon as it is known.

        Raises what ``generate`` raises, and UsageError E803 for several prompts.
        """
        prompts, is_one = self._prompts(ids)
        if not is_one:
            raise _bad_prompt("stream got several prompts", "it takes the tokens of one prompt")
        for tokens in self._stream(prompts, max_new_tokens, stop, None, sampling):
            yield int(tokens[0])

    def _prompts(self, ids: Ids) -> tuple[list[Array], bool]:
        """Return the prompts, and whether ``ids`` is one; raises UsageError E803 for bad ones."""
        prompts, is_one = _prompts(ids)
        words = min(each.vocabulary for each in (self._step, self._first) if each is not None)
        largest = max(int(prompt.max()) for prompt in prompts)
        if largest >= words:
            why = f"the decoder knows the tokens 0 to {words - 1}"
            raise _bad_prompt(f"the prompt has the token {largest}", why)
        return prompts, is_one

    def _groups(self, prompts: list[Array]) -> list[list[Array]]:
        """Return the prompts that are computed together: all, or each alone.

        Prompts of different lengths need padding. A model without mask and positions would count
        padding as tokens, and a recurrent state would take it in.
        """
        ports = self._step.ports
        has_positions = ports.positions is not None and ports.position_rank == 2
        has_state = any(cache.kind == "replaced" for cache in ports.caches)
        may_pad = ports.mask is not None and has_positions and not has_state and self._first is None
        is_fixed = isinstance(self._step.dim(0), int)
        together = may_pad or len(set(map(len, prompts))) == 1
        return [prompts] if together and not is_fixed else [[prompt] for prompt in prompts]

    def _stream(
        self,
        prompts: list[Array],
        count: int,
        stop: Collection[int],
        on_token: Callable[[Array], object] | None,
        sampling: Mapping[str, Any],
    ) -> Iterator[Array]:
        """Yield int64[B], the next token of each sequence; ``PADDING`` after its end."""
        sampler = Sampler(sampling_of(sampling))
        seen = _padded(prompts)
        width = seen.shape[1]
        mask = np.ones((len(prompts), width + count), bool)
        mask[:, :width] = seen != PADDING
        self._check_room(len(prompts), width, count)
        state = State(width + count, mask)
        has_ended = np.zeros(len(prompts), bool)
        logits = self._read_prompt(np.maximum(seen, 0), state)
        for number in range(count):
            chosen = sampler.choose(logits, seen)
            new = np.where(has_ended, PADDING, chosen)
            seen = np.concatenate([seen, new[:, None]], axis=1)
            has_ended |= np.isin(new, list(stop))
            if on_token is not None:
                on_token(new)
            yield new
            if has_ended.all() or number == count - 1:
                return
            logits = self._next(chosen[:, None], np.maximum(seen, 0), state)

    def _check_room(self, batch: int, width: int, count: int) -> None:
        """Raise UsageError E806 if the decoder has no room for ``count`` tokens after ``width``."""
        if self._room == 0:
            _, step = self._compiled(batch)
            self._room = room_of(step, batch, self._constants, may_run=self._first is None)
        if self._room is not None:
            refuse_small_cache(self._room, width, count)

    def _compiled(self, batch: int) -> tuple[Program, Program]:
        """Return the programs of a prompt and of one token, for ``batch`` sequences.

        They are one program if the step takes a fixed number of tokens, or has no caches and so
        reads all tokens in each call.
        """
        if batch not in self._programs:
            step = Program(self._step, batch, 1 if self._step.ports.caches else None, self._threads)
            if self._first is not None:
                prompt: Program = FirstProgram(self._first, self._step, batch, self._threads)
            elif isinstance(self._step.dim(1), int) or not self._step.ports.caches:
                prompt = step
            else:
                prompt = Program(self._step, batch, None, self._threads)
            self._programs[batch] = prompt, step
        return self._programs[batch]

    def _read_prompt(self, tokens: Array, state: State) -> Array:
        """Return float[B, V], the logits after the prompt ``tokens``, int64[B, S].

        ``size`` tokens are read in a call: one if the step takes one, ``PROMPT_TOKENS`` of a step
        with caches, else all. Both programs are compiled here for all lengths that will follow.
        """
        prompt, step = self._compiled(len(tokens))
        width, last = tokens.shape[1], state.capacity - 1
        size = width
        if prompt is step and self._step.ports.caches:
            size = 1
        elif self._first is None and self._step.ports.caches:
            size = PROMPT_TOKENS
        # Without caches, the same program reads the prompt and all new tokens later.
        longest = last if not self._step.ports.caches else min(size, width)
        prompt.compile_for(longest, state, [0, width - longest], self._constants)
        for begin in range(0, width, size):
            logits = prompt.run(tokens[:, begin : begin + size], state, self._constants)
        if prompt is not step:
            step.compile_for(1, state, [width, last], self._constants)
        return logits

    def _next(self, new: Array, seen: Array, state: State) -> Array:
        """Return the logits after the tokens ``new``, int64[B, 1]; ``seen`` are all tokens.

        A step without caches reads all of ``seen`` again, from an empty state.
        """
        _, step = self._compiled(len(new))
        if self._step.ports.caches:
            return step.run(new, state, self._constants)
        return step.run(seen, State(state.capacity, state.mask), self._constants)


def _prompts(ids: Ids) -> tuple[list[Array], bool]:
    """Return the prompts as int64[S] each, and whether ``ids`` is one prompt.

    Raises UsageError E803 for an empty prompt, and for elements that are no tokens.
    """
    is_one = len(ids) > 0 and np.ndim(ids[0]) == 0
    try:
        rows = [np.asarray(row) for row in ([ids] if is_one else ids)]
    except ValueError:
        rows = []
    if not rows or not all(row.ndim == 1 and row.size for row in rows):
        raise _bad_prompt("there is no prompt", "a prompt has one token or more")
    for row in rows:
        if row.dtype.kind not in "iu":
            raise _bad_prompt(f"the prompt has {row.dtype}", "tokens are integers")
        if row.min() < 0:
            raise _bad_prompt(f"the prompt has the token {row.min()}", "tokens are 0 or more")
    return [row.astype(np.int64) for row in rows], is_one


def _bad_prompt(what: str, why: str) -> UsageError:
    """Return E803 for a prompt that cannot be read."""
    return UsageError("E803", what, why=why, fix="smelt.generate(model, [12, 7, 345])")


def _padded(prompts: list[Array]) -> Array:
    """Return int64[B, S], the prompts with ``PADDING`` before the shorter ones."""
    width = max(map(len, prompts))
    rows = [np.pad(row, (width - len(row), 0), constant_values=PADDING) for row in prompts]
    return np.stack(rows)


def generate(
    model: Source,
    ids: Ids,
    max_new_tokens: int = 64,
    *,
    first: Source | None = None,
    inputs: Mapping[str, Any] | None = None,
    weights: str | Path | None = None,
    threads: int = 1,
    **options: Any,
) -> Any:
    """Return the tokens that ``model`` generates after the prompt ``ids``.

    ``options`` are those of ``Decoder.generate``; a ``Decoder`` keeps the compiled model for
    further prompts.
    """
    decoder = Decoder(model, first, inputs=inputs, weights=weights, threads=threads)
    return decoder.generate(ids, max_new_tokens, **options)
