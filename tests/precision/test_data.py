"""The data that a precision is chosen on: what is read, what is refused, how they are split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import smelt
from smelt.errors import UsageError
from smelt.precision.data import calibration_data, held_labels, selection_labels

ONE = """<ir_version: 8, opset_import: ["" : 17]>
f (float[B,3] x) => (float[B,3] y) { y = Relu(x) }"""
FIXED = ONE.replace("[B,", "[1,")
TWO = """<ir_version: 8, opset_import: ["" : 17]>
f (float[B,3] x, float[B,3] z) => (float[B,3] y) { y = Add(x, z) }"""
SEQUENCE = """<ir_version: 8, opset_import: ["" : 17]>
f (float[T,3] x) => (float[3,T] y) { y = Transpose(x) }"""

RUNNING_SUM = """<ir_version: 8, opset_import: ["" : 17]>
f (float[T,3] x) => (float[T,3] y)
<int64 axis = {0}> { y = CumSum(x, axis) }"""
NAMELESS = ONE.replace("float[B,3] y", "float[rows,3] y")
OF_ALL_ROWS = """<ir_version: 8, opset_import: ["" : 17]>
f (float[B,3] x) => (float[B,3] y, float[1,3] m) { y = Relu(x) m = ReduceMean<axes=[0]>(x) }"""


def loaded(text: str) -> Any:
    return smelt.load(onnx.parser.parse_model(text))


def rows(count: int) -> np.ndarray:
    return np.arange(3 * count, dtype=np.float32).reshape(count, 3)


def write_parts(folder: Path) -> Path:
    for number in (10, 2, 1):
        np.savez(folder / f"{number}.npz", x=rows(1) + number)
    return folder


def test_each_second_batch_is_held_out() -> None:
    data = calibration_data(loaded(ONE), {"x": rows(20)})
    assert [len(sample[0]) for sample in data.calibration] == [8, 4]
    assert data.held_rows == tuple(range(8, 16))
    np.testing.assert_array_equal(data.held_out[0][0], rows(20)[8:16])
    assert data.note == "calibrated on 12 samples, error measured on 8 samples held out"


def test_the_split_is_the_same_each_time() -> None:
    first, second = (calibration_data(loaded(ONE), rows(7)) for _ in range(2))
    np.testing.assert_equal(first.calibration, second.calibration)
    np.testing.assert_equal(first.held_out, second.held_out)


@pytest.mark.parametrize(
    ("model", "source", "calibration", "held"),
    [
        (ONE, {"x": rows(2)}, [1], [1]),
        (ONE, rows(5), [3], [2]),
        (ONE, [rows(1), rows(1), rows(1)], [1, 1], [1]),
        (ONE, ({"x": rows(1)} for _ in range(4)), [1, 1], [1, 1]),
        (ONE, rows(4).astype(np.float64), [2], [2]),
        (FIXED, {"x": rows(4)}, [1, 1], [1, 1]),
        (FIXED, {"x": rows(4)[:, None]}, [1, 1], [1, 1]),
        (TWO, {"x": rows(4), "z": rows(4)}, [2], [2]),
        (TWO, [(rows(1), rows(1)), (rows(1), rows(1))], [1], [1]),
        (SEQUENCE, [{"x": rows(5)}, {"x": rows(4)}], [5], [4]),
        (RUNNING_SUM, [rows(20), rows(12)], [20], [12]),
        (NAMELESS, rows(4), [2], [2]),
        (OF_ALL_ROWS, [rows(4), rows(9)], [4], [9]),
    ],
)
def test_data_of_many_forms(
    model: str, source: Any, calibration: list[int], held: list[int]
) -> None:
    data = calibration_data(loaded(model), source)
    assert [len(sample[0]) for sample in data.calibration] == calibration
    assert [len(sample[0]) for sample in data.held_out] == held


def test_a_folder_is_read_in_the_order_of_numbers(tmp_path: Path) -> None:
    data = calibration_data(loaded(ONE), write_parts(tmp_path))
    assert [sample[0][0, 0] for sample in (*data.calibration, *data.held_out)] == [1, 10, 2]


def test_folders_of_onnx_tests_are_read(tmp_path: Path) -> None:
    for number in range(2):
        folder = tmp_path / f"test_data_set_{number}"
        folder.mkdir()
        for index, name in enumerate("xz"):
            tensor = onnx.numpy_helper.from_array(rows(1) + number, name)
            (folder / f"input_{index}.pb").write_bytes(tensor.SerializeToString())
        (folder / "output_0.pb").write_bytes(b"ignored")
    data = calibration_data(loaded(TWO), tmp_path)
    assert len(data.calibration) == len(data.held_out) == 1


def test_a_second_source_is_held_out() -> None:
    data = calibration_data(loaded(ONE), rows(1), held=rows(3))
    assert [len(sample[0]) for sample in data.calibration] == [1]
    assert sum(len(sample[0]) for sample in data.held_out) == 3


def test_without_data_inputs_are_drawn_and_it_is_said() -> None:
    data = calibration_data(loaded(ONE), None)
    assert data.drawn
    assert "random inputs" in data.note
    assert data.calibration
    assert data.held_out
    pairs = zip(data.calibration, data.held_out, strict=True)
    assert not all(np.array_equal(a[0], b[0]) for a, b in pairs)


@pytest.mark.parametrize(
    ("model", "source", "code", "words"),
    [
        (ONE, {"y": rows(2)}, "E632", "no arrays for 'x'"),
        (ONE, {"x": rows(2), "extra": rows(2)}, "E632", "do not fit"),
        (ONE, {"x": rows(2).astype(np.int64)}, "E632", "do not fit"),
        (ONE, {"x": rows(2)[:, :2]}, "E632", "do not fit"),
        (ONE, 3, "E632", "cannot be read"),
        (TWO, rows(2), "E632", "has no name"),
        (ONE, rows(2) * np.nan, "E684", "hold NaN"),
        (ONE, rows(1), "E684", "one sample"),
        (RUNNING_SUM, rows(6), "E684", "one sample"),
        (SEQUENCE, rows(6), "E684", "one sample"),
        (ONE, [], "E684", "no sample"),
        (ONE, "missing.npz", "E617", "cannot read"),
    ],
)
def test_wrong_data_are_refused(model: str, source: Any, code: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        calibration_data(loaded(model), source)
    assert raised.value.code == code
    assert raised.value.why


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no data"):
        calibration_data(loaded(ONE), tmp_path)


def test_labels_follow_their_rows() -> None:
    data = calibration_data(loaded(ONE), rows(20))
    assert held_labels(data, np.arange(20)).tolist() == list(range(8, 16))
    with pytest.raises(UsageError, match="19 labels for 20 samples"):
        held_labels(data, np.arange(19))


def test_of_many_runs_a_part_is_kept_for_the_last_measurement() -> None:
    data = calibration_data(loaded(ONE), rows(96))  # 12 runs of 8 rows
    assert [len(part) for part in (data.calibration, data.chosen_on, data.held_out)] == [6, 3, 3]
    assert data.note == (
        "calibrated on 48 samples, forms chosen on 24 samples, "
        "error measured on 24 samples held out"
    )
    every = [int(row) for run in (1, 5, 9) for row in range(8 * run, 8 * run + 8)]
    assert selection_labels(data, np.arange(96)).tolist() == every
    assert held_labels(data, np.arange(96)).tolist() == [row + 16 for row in every]
    few = calibration_data(loaded(ONE), rows(88))
    assert not few.chosen_on
    assert few.selection == few.held_out
