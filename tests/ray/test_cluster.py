"""Batches and Ray Data on a real cluster of this machine."""

import json
import multiprocessing
import os
import secrets
import socket
from pathlib import Path

import numpy as np
import onnx
import pytest

# tests/ray would pass for the package itself.
pytest.importorskip("ray._version", reason="needs ray: pip install 'smelt-compiler[ray]'")

from small_models import MODEL
from typer.testing import CliRunner

import smelt
from smelt.batch import plan, run
from smelt.cli.main import app
from smelt.errors import UsageError
from smelt.ray import Predictor, batches
from smelt.ray.batches import run_jobs
from smelt.ray.cluster import connected

pytestmark = pytest.mark.slow  # To start a cluster takes some 10 s.


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two CPUs, with a token of its own so that none is written to the home folder."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


@pytest.fixture
def models(tmp_path):
    """Two models, and one that is none."""
    (tmp_path / "m" / "sub").mkdir(parents=True)
    data = onnx.parser.parse_model(MODEL).SerializeToString()
    for name in ("a.onnx", "sub/b.onnx"):
        (tmp_path / "m" / name).write_bytes(data)
    (tmp_path / "m" / "bad.onnx").write_bytes(b"nothing")
    return tmp_path / "m"


def test_a_batch_on_the_cluster_and_again_on_this_machine(cluster, models, tmp_path):
    planned = plan([models], "optimize", tmp_path / "out")
    summary = run(planned, run_jobs=run_jobs)
    assert {o.name: o.code for o in summary.listed()} == {
        "a.onnx": "",
        "bad.onnx": "E301",
        "sub/b.onnx": "",
    }
    onnx.checker.check_model(tmp_path / "out" / "sub" / "b.onnx")
    assert all(outcome.cached for outcome in run(planned).listed())


def test_the_command_on_the_cluster(cluster, models, tmp_path):
    arguments = ["batch", str(models), "--do", "optimize", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*arguments, "--ray", "local", "--json"])
    assert result.exit_code == 1
    counts = json.loads(result.stdout)["counts"]
    assert (counts["done"], counts["failed"]) == (2, 1)


def test_options_that_the_command_does_not_have_end_the_batch(cluster, models, tmp_path):
    planned = plan([models], "optimize", tmp_path / "out", options=["--wrong"])
    with pytest.raises(UsageError) as refused:
        run(planned, run_jobs=run_jobs)
    assert refused.value.code == "E643"


def test_another_smelt_is_refused(cluster, models, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "__version__", "9.9")
    with pytest.raises(UsageError) as refused:
        run(plan([models], "optimize", tmp_path / "out"), run_jobs=run_jobs)
    assert refused.value.code == "E695"


def test_a_worker_that_dies_is_one_failure(cluster, models, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "_run_job", _die)
    summary = run(plan([models / "a.onnx"], "optimize", tmp_path / "out"), run_jobs=run_jobs)
    assert [outcome.code for outcome in summary.listed()] == ["E520"]


def _die(job, batch, known, version):
    os._exit(1)


def test_results_before_an_interruption_stay(cluster, models, tmp_path):
    planned = plan([models], "optimize", tmp_path / "out")

    def interrupt(outcome):
        raise KeyboardInterrupt

    stopped = run(planned, run_jobs=run_jobs, tell=interrupt)
    assert stopped.stopped
    assert stopped.to_json()["counts"]["missing"] == 2
    summary = run(planned, run_jobs=run_jobs)
    assert summary.to_json()["counts"]["done"] == 2
    assert summary.to_json()["counts"]["cached"] == 1


@pytest.mark.parametrize("options", [{}, {"target": "c", "dims": {"B": 4}}])
def test_ray_data_maps_batches(cluster, models, options):
    import ray.data

    rows = np.arange(40, dtype=np.float32).reshape(10, 4)
    data = ray.data.from_items([{"id": i, "x": row} for i, row in enumerate(rows)])
    mapped = data.map_batches(
        Predictor,
        fn_constructor_args=(str(models / "a.onnx"),),
        fn_constructor_kwargs={"keep": ["id"], **options},
        concurrency=1,
        batch_size=3,
        batch_format="numpy",
    )
    found = {row["id"]: row["y"] for row in mapped.take_all()}
    weights = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
    for index, row in enumerate(rows):
        np.testing.assert_allclose(found[index], row @ weights, rtol=1e-6)


def test_a_decoder_in_each_actor(cluster):
    import ray.data

    model = Path(__file__).parents[1] / "merging" / "models" / "gpt2_decoder_with_past.onnx"
    prompts = [[3, 1, 4], [1, 5], [9], [2, 6, 5, 3]]
    data = ray.data.from_items([{"id": i, "ids": ids} for i, ids in enumerate(prompts)])
    mapped = data.map_batches(
        Predictor,
        fn_constructor_args=(str(model),),
        fn_constructor_kwargs={"generate": {"max_new_tokens": 4}, "keep": ["id"]},
        concurrency=2,
        batch_size=2,
        batch_format="numpy",
    )
    found = {row["id"]: list(row["tokens"]) for row in mapped.take_all()}
    assert found == {i: smelt.generate(model, ids, 4).tolist() for i, ids in enumerate(prompts)}


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nothing_listens_is_refused(scheme):
    """In a process of its own, as this one has a cluster."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{free.getsockname()[1]}"
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_code_of, (address,)) == "E694"


def _code_of(address):
    try:
        with connected(address):
            return "connected"
    except UsageError as error:
        return error.code
