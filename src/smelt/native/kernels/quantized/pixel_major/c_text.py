"""The C functions of this folder, read from its ``.h`` files."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.integer_vectors import declare


@cache
def _text(name: str) -> str:
    """Return the text of the file ``name``."""
    return files(__package__).joinpath(f"{name}.h").read_text("ascii")


def header(cx: KernelContext, name: str, **words: str) -> None:
    """Add the file ``name`` to the library, with ``words`` in place of their names in capitals.

    ``NAME`` and ``REST`` distinguish the functions of one file with different words.
    """
    text = _text(name)
    for word, value in words.items():
        text = re.sub(rf"(?<![A-Z]){word}(?![A-Z])", value, text)
    suffixes = (words.get("NAME", words.get("BYTE")), words.get("REST"))
    cx.call("_".join((name, *filter(None, suffixes))), text)


def declare_pairs(cx: KernelContext) -> None:
    """Let the kernel multiply pairs of 16-bit integers."""
    declare(cx)
    header(cx, "dot2")
