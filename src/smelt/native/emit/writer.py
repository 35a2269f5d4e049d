"""Write indented C, one line or one loop nest at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager


class Writer:
    """Lines of C at the current indentation.

    With ``parts`` > 1, the text is a function of one shard: its shared loops run over the range of
    shard number ``part``. ``is_shared`` is True after the first shared loop.
    """

    def __init__(self, depth: int = 0, parts: int = 1) -> None:
        """Begin without lines, ``depth`` levels indented; ``parts`` is the number of shards."""
        self._lines: list[str] = []
        self._depth = depth
        self.parts = parts
        self.is_shared = False

    def line(self, text: str) -> None:
        """Add one line."""
        self._lines.append("    " * self._depth + text)

    def lines(self, text: str) -> None:
        """Add several lines, each indented further by the current indentation."""
        for line in text.splitlines():
            self.line(line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Put the lines of the ``with`` block between ``head {`` and ``}``."""
        self.line(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    @contextmanager
    def loop(
        self, var: str, stop: int | str, start: int | str = 0, step: int | str = 1
    ) -> Iterator[None]:
        """Put the lines of the ``with`` block into a loop over ``var`` from ``start`` below
        ``stop``.

        ``for (ptrdiff_t i = 0; i < 8; ++i) {`` for ``var`` "i" and ``stop`` 8.
        """
        with self.block(f"for (ptrdiff_t {var} = {start}; {var} < {stop}; {_advance(var, step)})"):
            yield

    @contextmanager
    def shared_loop(
        self, var: str, stop: int | str, start: int | str = 0, step: int | str = 1
    ) -> Iterator[None]:
        """Write a loop with independent iterations, of which each shard computes a range.

        The C for 100 iterations and 4 shards:

        ```
        for (ptrdiff_t i = 0 + 100 * part / 4, i_end = part + 1 == 4 ? 100 : ...; i < i_end; ++i) {
        ```
        """
        if self.parts == 1:
            head = f"for (ptrdiff_t {var} = {start}; {var} < {stop}; {_advance(var, step)})"
        else:
            self.is_shared = True
            count = f"({stop} - {start} + {step} - 1) / ({step})"
            if isinstance(stop, int) and isinstance(start, int) and isinstance(step, int):
                count = str(max(0, -(-(stop - start) // step)))
            times = "" if step == 1 else f" * ({step})"
            first, last = (f"{count} * {part} / {self.parts}" for part in ("part", "(part + 1)"))
            end = f"part + 1 == {self.parts} ? {stop} : {start} + {last}{times}"
            begin = f"ptrdiff_t {var} = {start} + {first}{times}, {var}_end = {end}"
            head = f"for ({begin}; {var} < {var}_end; {_advance(var, step)})"
        with self.block(head):
            yield

    @contextmanager
    def loops(
        self, variables: Sequence[str], stops: Sequence[int], shared: int | None = None
    ) -> Iterator[None]:
        """Write nested loops, outermost first; number ``shared`` is a shared loop."""
        with ExitStack() as stack:
            for number, (var, stop) in enumerate(zip(variables, stops, strict=True)):
                loop = self.shared_loop if number == shared else self.loop
                stack.enter_context(loop(var, stop))
            yield

    def widest(self, stops: Sequence[int]) -> int | None:
        """Return the index of the loop to split into shards, given all loop sizes.

        It is the first with 8 iterations per shard, or else the largest. None if there is one
        shard.
        """
        if self.parts == 1:
            return None
        enough = (i for i, stop in enumerate(stops) if stop >= 8 * self.parts)
        return next(enough, max(range(len(stops)), key=stops.__getitem__, default=None))

    def text(self) -> str:
        """Return the whole text."""
        return "".join(line + "\n" for line in self._lines)


def _advance(var: str, step: int | str) -> str:
    """Return the C that advances the loop variable: ``++i`` or ``i += 4``."""
    return f"++{var}" if step == 1 else f"{var} += {step}"
