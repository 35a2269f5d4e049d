"""Generate tokens by a decoder, from the tokens of a prompt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt.decoding.forms import Forms
from smelt.decoding.program import PROMPT_TOKENS, Programs
from smelt.decoding.prompts import PADDING, Ids, bad_prompt, padded, prompts_of
from smelt.decoding.room import refuse_small_cache
from smelt.decoding.sampling import Sampler, sampling_of
from smelt.decoding.sources import Sources
from smelt.decoding.state import Array, State

if TYPE_CHECKING:
    from smelt.compiler import Source

CONTEXT = 2047
"""The fewest tokens of pasts that a decoder with caches is compiled for; one more is read."""


class Decoder:
    """A decoder that is compiled for this machine and keeps its caches from token to token.

    ``model`` is an exported step: tokens, pasts, and optionally a mask and positions, become logits
    and the pasts of the next step. Without a past, each step computes all tokens again. ``first``
    computes the prompt if ``model`` takes one token a call; without it, the prompt takes a call for
    each token. A merged decoder, with a bool input that chooses a branch, has both in one file.
    ``inputs`` are the arrays of further inputs, such as the states of an encoder. ``weights`` is a
    GGUF file or a checkpoint, whose tensors replace the weights of the models; ``notes`` say what
    became of quantized ones. ``model`` may also be a folder that ``save`` wrote.

    The compiled form of models from files is kept in the cache: the next process starts with it.
    """

    def __init__(
        self,
        model: Source,
        first: Source | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        weights: str | Path | None = None,
        threads: int | None = None,
    ) -> None:
        """Find the compiled form, or read and optimize the models.

        In the second case, they are compiled by the first call of ``generate``. Raises UsageError
        E801 for a model that is not a decoder, E805 for ``weights`` that do not fit, E807 for a
        folder that cannot be run here, and what ``smelt.load`` raises.
        """
        self._constants = {name: np.asarray(value) for name, value in (inputs or {}).items()}
        self._forms = Forms(model, first, self._constants, weights, threads)
        self.notes = self._forms.step.notes

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments; models in memory become bytes."""
        return _decoder_of, (self._forms.sources.portable(),)

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
        Raises UsageError E802 for values that are not allowed, E803 for prompts that are empty or
        no tokens, and E806 for more tokens than the decoder has room for.
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
            raise bad_prompt("stream got several prompts", "it takes the tokens of one prompt")
        for tokens in self._stream(prompts, max_new_tokens, stop, None, sampling):
            yield int(tokens[0])

    def save(self, folder: str | Path, context: int = CONTEXT + 1) -> None:
        """Compile for one sequence of up to ``context`` tokens, and write the result to ``folder``.

        ``Decoder(folder)`` runs it without the compiler, on machines with the same CPU and version
        of smelt. Raises UsageError E807 for a decoder that needs NumPy for a part of its steps, and
        for a folder that holds other files.
        """
        self._forms.save_to(Path(folder))
        words = self._forms.step.vocabulary
        stream = self._stream([np.zeros(1, np.int64)], max(context - 1, 1), range(words), None, {})
        for _ in stream:  # ends after one token
            pass

    def _prompts(self, ids: Ids) -> tuple[list[Array], bool]:
        """Return the prompts, and whether ``ids`` is one; raises UsageError E803 for bad ones."""
        prompts, is_one = prompts_of(ids)
        networks = (self._forms.step, self._forms.first)
        words = min(each.vocabulary for each in networks if each is not None)
        largest = max(int(prompt.max()) for prompt in prompts)
        if largest >= words:
            why = f"the decoder knows the tokens 0 to {words - 1}"
            raise bad_prompt(f"the prompt has the token {largest}", why)
        return prompts, is_one

    def _groups(self, prompts: list[Array]) -> list[list[Array]]:
        """Return the prompts that are computed together: all, or each alone.

        Prompts of different lengths need padding. A model without mask and positions would count
        padding as tokens, and a recurrent state would take it in. A saved decoder takes one prompt.
        """
        ports = self._forms.step.ports
        has_positions = ports.positions is not None and ports.position_rank == 2
        has_state = any(cache.kind == "replaced" for cache in ports.caches)
        has_first = self._forms.first is not None
        may_pad = ports.mask is not None and has_positions and not has_state and not has_first
        takes_one = isinstance(self._forms.step.dim(0), int) or self._forms.is_final
        together = may_pad or len(set(map(len, prompts))) == 1
        return [prompts] if together and not takes_one else [[prompt] for prompt in prompts]

    def _stream(
        self,
        prompts: list[Array],
        count: int,
        stop: Collection[int],
        on_token: Callable[[Array], object] | None,
        sampling: Mapping[str, Any],
    ) -> Iterator[Array]:
        """Yield int64[B], the next token of each sequence; ``PADDING`` after its end.

        The program of a step is compiled, if necessary, after the first token.
        """
        sampler = Sampler(sampling_of(sampling))
        seen = padded(prompts)
        width = seen.shape[1]
        mask = np.ones((len(prompts), width + count), bool)
        mask[:, :width] = seen != PADDING
        room = self._forms.room(len(prompts))
        if room is not None:
            refuse_small_cache(room, width, count)
        state = State(width + count, mask)
        has_ended = np.zeros(len(prompts), bool)
        logits, compile_step = self._read_prompt(np.maximum(seen, 0), state)
        for number in range(count):
            chosen = sampler.choose(logits, seen)
            new = np.where(has_ended, PADDING, chosen)
            seen = np.concatenate([seen, new[:, None]], axis=1)
            has_ended |= np.isin(new, list(stop))
            if on_token is not None:
                on_token(new)
            yield new
            if number == 0:
                compile_step()
            if has_ended.all() or number == count - 1:
                return
            logits = self._next(chosen[:, None], np.maximum(seen, 0), state)

    def _read_prompt(self, tokens: Array, state: State) -> tuple[Array, Callable[[], None]]:
        """Return float[B, V], the logits after the prompt ``tokens``, int64[B, S], and a function
        that compiles the step and keeps both programs, unless that is done.

        ``size`` tokens are read in a call: one if the step takes one, ``PROMPT_TOKENS`` of a step
        with caches, else all. Both programs are compiled for all lengths that will follow. The C of
        the step is written while the C compiler works on that of the prompt.
        """
        forms, constants, (batch, width) = self._forms, self._constants, tokens.shape
        has_caches, last = bool(forms.step.ports.caches), state.capacity - 1
        prompt, step = forms.programs(batch)
        size, longest, pasts = width, max(width, PROMPT_TOKENS), [0]
        if has_caches and forms.first is None:
            size = longest = 1 if prompt is step else PROMPT_TOKENS
            pasts = [0, max(last, CONTEXT)]
        elif not has_caches:  # the same program reads all new tokens, too
            longest = max(last, PROMPT_TOKENS)

        def takes_prompt(programs: Programs) -> bool:
            """True if all parts of a prompt can be read."""
            return programs.prompt.takes(longest, state, pasts, constants)

        lengths = [1, max(last, CONTEXT)]

        def begins(programs: Programs) -> bool:
            """Begin to compile; a step that reads what ``first`` computes is not known yet."""
            is_working = programs.prompt.begin(longest, state, pasts, constants)
            if is_working and forms.first is None and programs.step is not programs.prompt:
                programs.step.begin(1, state, lengths, constants)
            return True

        def takes_all(programs: Programs) -> bool:
            """True if all further tokens can be read, too; their pasts may have other shapes."""
            return programs.step.takes(1, state, lengths, constants) and takes_prompt(programs)

        def compile_step() -> None:
            """Compile the program of a step, and keep both."""
            if prompt is not step:
                forms.programs(batch, takes_all)
            forms.keep(max(last, CONTEXT) + 1 if has_caches else longest)

        forms.programs(batch, begins)
        prompt = forms.programs(batch, takes_prompt).prompt
        for begin in range(0, width, size):
            logits = prompt.run(tokens[:, begin : begin + size], state, constants)
        if forms.is_loaded(batch):
            compile_step()
        return logits, compile_step

    def _next(self, new: Array, seen: Array, state: State) -> Array:
        """Return the logits after the tokens ``new``, int64[B, 1]; ``seen`` are all tokens.

        A step without caches reads all of ``seen`` again, from an empty state.
        """
        step = self._forms.programs(len(new)).step
        if self._forms.step.ports.caches:
            return step.run(new, state, self._constants)
        return step.run(seen, State(state.capacity, state.mask), self._constants)


def _decoder_of(sources: Sources) -> Decoder:
    """Return a decoder with the arguments ``sources``."""
    return Decoder(
        sources.model,
        sources.first,
        inputs=sources.given,
        weights=sources.weights,
        threads=sources.threads,
    )


def generate(
    model: Source,
    ids: Ids,
    max_new_tokens: int = 64,
    *,
    first: Source | None = None,
    inputs: Mapping[str, Any] | None = None,
    weights: str | Path | None = None,
    threads: int | None = None,
    **options: Any,
) -> Any:
    """Return the tokens that ``model`` generates after the prompt ``ids``.

    ``options`` are those of ``Decoder.generate``; a ``Decoder`` keeps the compiled model for
    further prompts.
    """
    decoder = Decoder(model, first, inputs=inputs, weights=weights, threads=threads)
    return decoder.generate(ids, max_new_tokens, **options)
