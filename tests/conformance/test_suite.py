"""Every installed target, and one of a third party, passes the same conformance suite."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import smelt
from examples.npu import npu
from smelt.conformance import CASES, Case, conform, conform_all
from smelt.errors import Mismatch, Unsupported, UsageError
from smelt.ir import text
from smelt.targets import registry
from smelt.targets.base import Artifact, Limits, Plan
from smelt.targets.registry import find_target, target_names

OURS = ("c", "host", "onnx")
REFUSED = {
    ("c", "a symbolic batch"),
    ("c", "an operator nobody has"),
    ("host", "an operator nobody has"),
}
"""What a target of ours may refuse; everything else must compile and agree."""

THIRD_PARTY = '''
"""A target as another package would ship it: plain text listing of what it would run."""

from smelt.targets.base import Artifact, Limits, Plan, Target


def emit(plan: Plan) -> Artifact:
    """One line an operator; runs in ONNX Runtime."""
    from smelt.runtime.runner import open_runner

    lines = [f"{node.op_type} {len(node.inputs)}" for node in plan.steps]
    files = {"listing.txt": "\\n".join(lines).encode()}
    return Artifact("listing", plan.model, files, plan, {}, lambda: open_runner(plan.model))


def schedule(plan: Plan) -> None:
    plan.steps = list(plan.model.graph)


listing = Target(
    name="listing",
    summary="a listing of operators",
    emit=emit,
    schedule=schedule,
    limits=Limits(operators=frozenset(("", op) for op in (
        "Identity", "Exp", "Tanh", "Add", "Relu", "MatMul", "Gemm", "Conv", "Neg", "Abs", "Mul",
    ))),
)
'''


@pytest.fixture
def third_party(tmp_path: Path) -> Iterator[Path]:
    """A package installed beside smelt that registers the target ``listing``."""
    (tmp_path / "listing_target.py").write_text(THIRD_PARTY)
    info = tmp_path / "listing_target-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: listing-target\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[smelt.targets]\nlisting = listing_target:listing\n")
    sys.path.insert(0, str(tmp_path))
    with registry.TARGETS.refilled():
        yield tmp_path
    sys.path.remove(str(tmp_path))
    sys.modules.pop("listing_target", None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("name", OURS)
def test_our_targets_conform(name: str, case: Case) -> None:
    outcome = conform(find_target(name), case)
    assert outcome == "agrees" or (name, case.name) in REFUSED or case.undefined


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_third_partys_target_conforms(third_party: Path, case: Case) -> None:
    outcome = conform(find_target("listing"), case)
    beyond = case.undefined or case.name in (
        "int8",
        "an int8 dense layer",
        "a network with every category",
    )
    assert outcome == ("refused" if beyond else "agrees")


def test_a_target_that_supports_nothing_does_not_conform() -> None:
    nothing = replace(find_target("onnx"), name="nothing", limits=Limits(operators=frozenset()))
    with pytest.raises(Mismatch, match="runs no nodes in any of 3 cases") as caught:
        conform_all(nothing, CASES[:3])
    assert caught.value.code == "E705"


def test_a_target_is_held_to_what_it_declares() -> None:
    def schedule(plan: Plan) -> None:
        raise Unsupported("E201", "no kernel for Exp")

    late = replace(find_target("onnx"), name="late", schedule=schedule)
    with pytest.raises(Mismatch, match="its limits allow the case, but it refuses with E201"):
        conform(late, CASES[1])


@pytest.mark.filterwarnings("error")
def test_operators_on_the_fallback_do_not_count_for_the_target() -> None:
    wanted = [c for c in CASES if c.name in ("int8", "an int8 dense layer", "elementwise")]
    found = conform_all(npu, wanted)
    assert {name: each.outcome for name, each in found.items()} == {
        "elementwise": "elsewhere",
        "int8": "agrees",
        "an int8 dense layer": "agrees",
    }
    assert found["int8"].here == {"example.npu.ConvRelu": 1}
    assert "does not list this operator" in found["int8"].left["example.npu.Quantize"]
    assert set(found["elementwise"].left) == {"Exp", "Tanh"}
    assert found["int8"].seconds > 0
    assert found["int8"].reference > 0
    assert found["elementwise"].seconds is None


def test_a_third_partys_target_is_listed_and_compiles(third_party: Path) -> None:
    assert set(target_names()) >= {*OURS, "listing"}
    artifact = smelt.compile(text.parse(CASES[3].graph), target="listing")
    assert artifact.files["listing.txt"].decode().splitlines()[0].split()[0] in ("Gemm", "MatMul")
    saved = artifact.save(third_party / "out")
    assert [path.name for path in saved] == ["listing.txt"]


def test_a_name_taken_twice_is_an_error(third_party: Path) -> None:
    info = third_party / "other_target-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-target\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        textwrap.dedent("""
        [smelt.targets]
        onnx = listing_target:listing
    """)
    )
    with pytest.raises(UsageError) as caught:
        find_target("onnx")
    assert caught.value.code == "E610"
    assert [at.split(" ")[0] for at in caught.value.at] == [
        "smelt.targets.onnx:onnx",
        "listing_target:listing",
    ]
    assert find_target("host").name == "host"
    assert find_target("listing").name == "listing"


def test_a_target_has_the_name_of_its_entry_point(third_party: Path) -> None:
    (third_party / "listing_target-1.0.dist-info" / "entry_points.txt").write_text(
        "[smelt.targets]\nanother = listing_target:listing\n"
    )
    with registry.TARGETS.refilled(), pytest.raises(UsageError, match="called 'listing'") as caught:
        find_target("another")
    assert caught.value.code == "E615"


def test_an_unknown_target_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'host'") as caught:
        find_target("hots")
    assert caught.value.code == "E611"


def test_a_target_that_cannot_run_here_only_compiles() -> None:
    def emit(plan: Plan) -> Artifact:
        return Artifact("blind", plan.model, {"nodes": b"1"}, plan)

    blind = replace(find_target("onnx"), name="blind", emit=emit)
    assert conform(blind, CASES[1]) == "compiles"


def test_files_hold_bytes() -> None:
    def emit(plan: Plan) -> Artifact:
        return Artifact("textual", plan.model, {"nodes": "1"}, plan)  # type: ignore[dict-item]

    with pytest.raises(Mismatch, match="the file 'nodes' holds no bytes: '1'"):
        conform(replace(find_target("onnx"), name="textual", emit=emit), CASES[1])


def test_a_refusal_of_the_wrong_kind_is_told_in_full() -> None:
    with pytest.raises(Mismatch, match=r"E611.*there is no target 'hots'"):
        conform(replace(find_target("onnx"), fallback="hots"), CASES[1])
