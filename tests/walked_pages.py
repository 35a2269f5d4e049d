"""The pages of docs that are followed step by step, with their files and commands."""

from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
_TOLD = ("tutorial", "near-misses", "debugging-a-wrong-result")
WALKED = [*(DOCS / f"{name}.md" for name in _TOLD), *sorted(DOCS.glob("for-*.md"))]
