"""What the engine emits for small models is what was read and committed (``tests/emitted.py``)."""

from __future__ import annotations

import pytest
from emitted import differences, table_of

TABLE = table_of("program")


@pytest.mark.parametrize("case", TABLE)
def test_it_is_what_the_table_records(case: str) -> None:
    found = differences(case, TABLE[case])
    assert not found, "\n".join([*found, "if this is meant: python -m emitted --write"])
