"""Which cases of a test run with ``--one-of``."""

from __future__ import annotations

from types import SimpleNamespace

from sampling import FEW, FewerCases


def case(test: str, number: int, **params: object) -> SimpleNamespace:
    return SimpleNamespace(nodeid=f"{test}[{number}]", callspec=SimpleNamespace(params=params))


def test_half_of_many_like_cases_run_and_all_rows_of_tables() -> None:
    many = [case("a.py::many", number, x=number) for number in range(200)]
    few = [case("a.py::few", number, x=number) for number in range(FEW)]
    table = [case("a.py::table", number, row="x: y") for number in range(50)]
    alone = SimpleNamespace(nodeid="a.py::alone")
    left_out: list[object] = []

    def deselected(items: list[object]) -> None:
        left_out.extend(items)

    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=deselected))
    items = [*many, *few, *table, alone]
    FewerCases(2).pytest_collection_modifyitems(config, items)
    assert items[-len(few) - len(table) - 1 :] == [*few, *table, alone]
    assert 80 < len(left_out) < 120
    assert [item for item in many if item not in left_out] == items[: 200 - len(left_out)]
