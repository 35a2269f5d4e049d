"""Writes indented C, one line or one nest of loops at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager


class Writer:
    """Lines of C at the current indentation."""

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def line(self, text: str) -> None:
        """One line."""
        self._lines.append("    " * self._depth + text)

    def lines(self, text: str) -> None:
        """Several lines, indented as they are plus the current indentation."""
        for line in text.splitlines():
            self.line(line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """``head {`` ... ``}``."""
        self.line(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    @contextmanager
    def loop(
        self, var: str, stop: int | str, start: int | str = 0, step: int = 1
    ) -> Iterator[None]:
        """``for`` over ``var`` from ``start`` up to ``stop``, which is left out."""
        advance = f"++{var}" if step == 1 else f"{var} += {step}"
        with self.block(f"for (ptrdiff_t {var} = {start}; {var} < {stop}; {advance})"):
            yield

    @contextmanager
    def loops(self, variables: Sequence[str], stops: Sequence[int]) -> Iterator[None]:
        """One loop inside the other, outermost first."""
        with ExitStack() as stack:
            for var, stop in zip(variables, stops, strict=True):
                stack.enter_context(self.loop(var, stop))
            yield

    def text(self) -> str:
        """Everything written, each line ended."""
        return "".join(line + "\n" for line in self._lines)
