"""The record of a verification, and the error if the source itself fails at the requested sizes."""

from __future__ import annotations

import json
import re
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
    assert found.inputs == ["normal", "sparse", "wide", "far"]
    assert found.passes == sum(report.changed for report in reports)
    assert found.versions == (found.passes if verify == "each" else 1)
    assert found.seconds > 0
    document = json.loads(json.dumps(found.to_json()))
    assert document["worst"]["ulp"] == found.worst.ulp
    when = "after each of" if verify == "each" else "after"
    assert str(found) == f"verified {when} {found.passes} changes at B=1,3: equal bits"
    assert " 1 change at " in str(replace(found, passes=1))


def test_the_error_is_told_with_what_is_allowed() -> None:
    layer = "g (float[B,4] x) => (float[B,4] y) { e = Exp(x) one = Constant<value_float=1.0>() "
    layer += "n = Neg(x) f = Exp(n) a = Add(f, one) s = Div(one, a) y = Mul(s, e) }"
    found = optimize_model(text.parse(layer), verify="final", dims={"B": (1, 3)}).evidence
    assert found is not None
    words = r"verified after \d changes? at B=1,3: (largest error \S+ \(\S+ ulp, \d+ allowed\)|equal bits)"
    assert re.fullmatch(words, str(found))


@pytest.mark.parametrize("verify", ["final", "each"])
def test_a_source_that_fails_at_the_sizes_says_so(verify: Verify) -> None:
    with pytest.raises(InvalidModel) as caught:
        optimize_model(text.parse(FIXED), verify=verify, dims={"B": (1, 3)})
    assert caught.value.code == "E321"
    assert "the source itself fails at B=1; B=3" in caught.value.what
    assert "--dim B=" in caught.value.fix
    assert optimize_model(text.parse(FIXED), verify=verify, dims={"B": (2, 4)}).evidence
