"""Constants fold together even if all layers cut theirs at the same positions."""

from __future__ import annotations

from rewrites import run_pass

from smelt.ir import text
from smelt.passes.simplify.const_elimination import const_elimination

LAYERS = 60


def test_weights_that_are_cut_at_shared_places_fold() -> None:
    """The gates of each LSTM of a Sequencer are reordered."""
    weights = ", ".join(f"float[4] w{i} = {{1,2,3,{i}}}" for i in range(LAYERS))
    cut = " ".join(
        f"a{i} = Slice(w{i}, zero, one) b{i} = Slice(w{i}, one, two) d{i} = Slice(w{i}, two, four) "
        f"c{i} = Concat<axis=0>(d{i}, b{i}, a{i}) x{i + 1} = Add(x{i}, c{i})"
        for i in range(LAYERS)
    )
    model = text.parse(
        f"g (float[N,4] x0) => (float[N,4] x{LAYERS}) <{weights}, int64[1] zero = {{0}}, "
        f"int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] four = {{4}}> {{ {cut} }}"
    )
    run_pass(const_elimination, model, grow_limit=0)
    assert [node.op_type for node in model.graph] == ["Add"] * LAYERS
    added = model.graph[-1].inputs[1]
    assert added is not None
    assert added.const_value is not None
    assert added.const_value.numpy().tolist() == [3, LAYERS - 1, 2, 1]
