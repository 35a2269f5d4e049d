"""Packages installed beside smelt, for tests of what they add by entry points."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def installed(folder: Path, name: str, code: str, entry_points: str) -> Iterator[None]:
    """A module ``name`` of ``code`` in a package of that name, version 1.0, while inside."""
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(name, None)
