"""An index of several files is read only if all of them are there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smelt.errors import InvalidModel
from smelt.frontends.weights.checkpoint import open_checkpoint

EMPTY = (2).to_bytes(8, "little") + b"{}"


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        (range(1, 9), "1 of the 9 files that it names are not beside it: 0.safetensors"),
        ([3], "8 of the 9 .*: 0.*, 1.*, 2.*, 4.*, 5.safetensors and 3 more"),
        (range(9), None),
    ],
    ids=["one", "most", "none"],
)
def test_an_index_tells_which_of_its_files_are_missing(
    tmp_path: Path, there: range | list[int], missing: str | None
) -> None:
    for number in there:
        (tmp_path / f"{number}.safetensors").write_bytes(EMPTY)
    index = tmp_path / "model.safetensors.index.json"
    weights = {f"w{number}": f"{number}.safetensors" for number in range(9)}
    index.write_text(json.dumps({"weight_map": weights}))
    if missing is None:
        assert open_checkpoint(index) == {}
        return
    with pytest.raises(InvalidModel, match=missing) as caught:
        open_checkpoint(index)
    assert caught.value.code == "E341"
    assert "'model.safetensors.index.json'" in str(caught.value)
