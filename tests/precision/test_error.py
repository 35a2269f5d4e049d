"""Errors of outputs: formulas on small arrays, NaN and infinity, and functions of the user."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from smelt.errors import UsageError
from smelt.precision.error import find_metric, parse_limit

A = np.array([[3.0, 4.0], [0.0, 1.0]], np.float32)


def outputs(*arrays: Any) -> list[dict[str, np.ndarray]]:
    return [{"y": np.asarray(array)} for array in arrays]


@pytest.mark.parametrize("metric", ["relative", "cosine", "kl", "top1"])
@pytest.mark.parametrize(
    "array",
    [A, A[:0], np.float32(2), A + np.inf, np.zeros_like(A), np.array([[np.nan, 1]], np.float32)],
    ids=["plain", "empty", "scalar", "infinite", "zeros", "nan"],
)
def test_equal_outputs_have_no_error(metric: str, array: np.ndarray) -> None:
    assert find_metric(metric)(outputs(array), outputs(np.copy(array))) == 0


@pytest.mark.parametrize(
    ("metric", "reference", "result", "error"),
    [
        ("relative", [3.0, 4.0], [3.0, 4.5], 0.1),
        ("relative", [0.0], [1.0], math.inf),
        ("relative", [1.0], [math.nan], math.inf),
        ("relative", [math.inf, 5.0], [math.inf, 5.5], 0.1),
        ("relative", [math.inf], [-math.inf], math.inf),
        ("cosine", [[1.0, 0.0]], [[0.0, 2.0]], 1.0),
        ("cosine", [[1.0, 0.0]], [[2.0, 0.0]], 0.0),
        ("cosine", [[1.0, 0.0]], [[0.0, 0.0]], 1.0),
        ("cosine", [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], 0.5),
        ("kl", [[0.5, 0.5]], [[0.25, 0.75]], 0.5 * math.log(2) + 0.5 * math.log(2 / 3)),
        ("kl", [[1.0, 1.0]], [[5.0, 5.0]], 0.0),
        ("top1", [[3.0, 4.0], [5.0, 4.0]], [[5.0, 4.0], [5.0, 4.0]], 50.0),
        ("top1", [[3.0, 4.0]], [[math.nan, 5.0]], 100.0),
    ],
)
def test_errors_of_small_outputs(metric: str, reference: Any, result: Any, error: float) -> None:
    pair = (outputs(np.asarray(part, np.float32)) for part in (reference, result))
    assert find_metric(metric)(*pair) == pytest.approx(error, abs=1e-7)


def test_the_worst_output_counts_over_all_samples() -> None:
    reference = [{"a": A, "b": A}, {"a": A, "b": A}]
    worse = [{"a": A, "b": A * 1.5}, {"a": A, "b": A}]
    assert find_metric()(reference, worse) == pytest.approx(0.5 / math.sqrt(2))


@pytest.mark.parametrize("metric", ["relative", "cosine", "kl"])
def test_the_error_of_integers_is_the_part_that_changed(metric: str) -> None:
    reference, result = np.array([1, 2, 3, 4]), np.array([1, 2, 3, 50])
    measure = find_metric(metric)
    assert measure(outputs(reference), outputs(result)) == 0.25
    assert measure(outputs(reference), outputs(result[:3])) == math.inf
    beside = [{"y": A, "classes": reference}], [{"y": A, "classes": result}]
    assert measure(*beside) == 0.25


def test_top1_needs_floats() -> None:
    with pytest.raises(UsageError, match="output of floats"):
        find_metric("top1")(outputs([1, 2]), outputs([1, 2]))


def test_another_shape_is_an_infinite_error() -> None:
    assert find_metric()(outputs(A), outputs(A[:1])) == math.inf


def test_top1_counts_labels_lost() -> None:
    metric = find_metric("top1", np.array([1, 0]))
    right, wrong = outputs([[0.0, 1.0], [1.0, 0.0]]), outputs([[1.0, 0.0], [1.0, 0.0]])
    assert metric(right, wrong) == 50
    assert metric(wrong, right) == 0


def test_a_function_gets_outputs_by_name() -> None:
    metric = find_metric(lambda a, b: float(np.abs(a[0]["y"] - b[0]["y"]).max()))
    assert metric(outputs(A), outputs(A + 2)) == 2


@pytest.mark.parametrize(
    ("metric", "labels", "code"),
    [
        ("cosin", None, "E686"),
        ("relative", np.arange(2), "E685"),
        ("top1", np.arange(3), "E685"),
        (lambda a, b: 1 / 0, None, "E686"),
        (lambda a, b: "no number", None, "E686"),
    ],
)
def test_wrong_metrics_and_labels(metric: Any, labels: Any, code: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_metric(metric, labels)(outputs(A), outputs(A))
    assert raised.value.code == code


def test_nan_of_a_function_is_an_infinite_error() -> None:
    assert find_metric(lambda a, b: math.nan)(outputs(A), outputs(A)) == math.inf


@pytest.mark.parametrize(
    ("text", "metric", "limit"),
    [("1%", "relative", 0.01), ("0.5", "top1", 0.5), ("0.5%", "top1", 0.5), (0.02, "cosine", 0.02)],
)
def test_limits(text: Any, metric: str, limit: float) -> None:
    assert parse_limit(text, find_metric(metric)) == pytest.approx(limit)


@pytest.mark.parametrize("text", ["", "-1%", "0", "nan", "inf", "1 percent"])
def test_wrong_limits(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_limit(text, find_metric())
    assert raised.value.code == "E636"
