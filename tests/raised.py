"""What the traced function raises, as smelt reports it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from smelt.errors import UsageError


@contextmanager
def raises_in_function(
    kind: type[Exception] | tuple[type[Exception], ...], match: str = ""
) -> Iterator[None]:
    """The block raises E113, caused by an exception of ``kind`` whose text has ``match``."""
    with pytest.raises(UsageError) as caught:
        yield
    assert caught.value.code == "E113"
    assert isinstance(caught.value.__cause__, kind)
    assert re.search(match, str(caught.value.__cause__))
