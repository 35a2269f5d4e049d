"""What a verification has shown, or that the source itself fails at the sizes that it was given."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from smelt.compiler import Verify, optimize_model
from smelt.errors import InvalidModel
from smelt.ir import text

MODEL = (
    "g (float[B,4] x) => (float[B,4] y) <float one = {1}> { a = Mul(x, one) b = Neg(a) y = Neg(b) }"
)

FIXED = "g (float[B] x) => (float[2,N] y) <int64[2] s = {2,-1}> { y = Reshape(x, s) }"


@pytest.mark.parametrize("verify", ["final", "each"])
def test_the_reports_hold_the_evidence(verify: Verify) -> None:
    reports = optimize_model(text.parse(MODEL), verify=verify, dims={"B": (1, 3)})
    found = reports.evidence
    assert found is not None
    assert found.mode == verify
    assert found.sizes == [{"B": 1}, {"B": 3}]
    assert found.inputs == ["normal", "sparse"]
    assert found.passes == sum(report.changed for report in reports)
    assert found.versions == (found.passes if verify == "each" else 1)
    assert found.seconds > 0
    document = json.loads(json.dumps(found.to_json()))
    assert document["max_ulp"] == found.max_ulp
    assert f"verified ({verify}): {found.passes} pass run" in str(found)
    one = replace(found, passes=1, inputs=["normal"])
    assert "1 pass run that changed something, 1 kind of inputs" in str(one)
    assert "B=1; B=3" in str(found)


@pytest.mark.parametrize("verify", ["final", "each"])
def test_a_source_that_fails_at_the_sizes_says_so(verify: Verify) -> None:
    with pytest.raises(InvalidModel) as caught:
        optimize_model(text.parse(FIXED), verify=verify, dims={"B": (1, 3)})
    assert caught.value.code == "E321"
    assert "the source itself fails at B=1; B=3" in caught.value.what
    assert "--dim B=" in caught.value.fix
    assert optimize_model(text.parse(FIXED), verify=verify, dims={"B": (2, 4)}).evidence
