"""A slice of the sweep leaves what earlier slices found."""

from __future__ import annotations

from pathlib import Path

from jax_surface.page import Results
from jax_surface.worker import Row, Task

RIGHT = Row("x32 0", "right", "")


def test_results_outside_the_new_sweep_stay(tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    Results({Task("jax.nn.relu", "x32"): [RIGHT], Task("jax.lax.add", "x32"): [RIGHT]}).save(kept)
    again = Results.load(kept)
    again.rows[Task("jax.nn.relu", "x32")] = [Row("x32 0", "wrong", "1 became 2")]
    page = again.page()
    assert "| jax.lax | 1 | 1 | 0 | 0 | 0 | 0 |" in page
    assert "| jax.nn | 1 | 0 | 0 | 0 | 1 | 0 |" in page
    assert "| all | 2 | 1 | 0 | 0 | 1 | 0 |" in page
    assert "50.00 %" in page
    assert "| jax.nn.relu | x32 0 | wrong | 1 became 2 |" in page


def test_distributions_count_together_and_any_size_apart() -> None:
    rows = {
        Task("jax.scipy.stats.norm.pdf", "x32"): [RIGHT],
        Task("jax.scipy.stats.beta.pdf", "x32"): [RIGHT],
        Task("jax.nn.relu", "x64"): [Row("x64 0 B", "right", "")],
    }
    page = Results(rows).page()
    assert "| jax.scipy.stats | 2 | 2 |" in page
    assert "| jax.nn, any size | 1 | 1 |" in page


def test_callables_without_arguments_are_named() -> None:
    assert (
        "No arguments are known for `jax.nn.relu`."
        in Results({Task("jax.nn.relu", "x32"): []}).page()
    )


def test_targets_have_a_part_of_their_own_and_keep_the_other() -> None:
    first = Results({Task("jax.nn.relu", "x32"): [RIGHT]}).page()
    refused = Row("c 0", "refused", "E201 operator Foo cannot be lowered")
    both = Results({Task("jax.nn.relu", "c"): [refused]}).page(first)
    assert both.startswith(first)
    assert "| jax.nn on c | 1 | 0 | 1 | 0 | 0 | 0 |" in both
    assert "| jax.nn.relu | c 0 | refused | E201 operator Foo cannot be lowered |" in both
    again = Results({Task("jax.nn.gelu", "x32"): [RIGHT, RIGHT]}).page(both)
    assert "| jax.nn | 2 | 2 | 0 | 0 | 0 | 0 |" in again
    assert again.endswith(both.removeprefix(first))
