"""Several models with one file of weights, in which equal weights are stored once."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text

SIZE = 96
ZEROS = np.zeros(SIZE, np.float32)
NEGATIVE = -ZEROS
ONES = np.ones(SIZE, np.float32)


def model(**weights):
    """Return a model that adds all ``weights`` of one type to its input, in an inner graph, too."""
    names = [*weights]
    sums = " ".join(f"s{i + 1} = Add(s{i}, {name})" for i, name in enumerate(names))
    source = f"""g (float[N] x, bool p) => (float[N] y) {{
        y = If(p) <then_branch = t () => (float[N] q) {{ s0 = Neg(x) {sums} q = Relu(s{len(names)}) }},
                   else_branch = e () => (float[N] r) {{ r = Add(x, {names[0]}) }}>
    }}"""
    header = ", ".join(f"float[{SIZE}] {name}" for name in names)
    made = text.parse(source.replace("bool p)", f"bool p, {header})"), 18)
    for value in list(made.graph.inputs)[2:]:
        made.graph.inputs.remove(value)
        value.const_value = ir.tensor(weights[value.name], name=value.name)
        made.graph.register_initializer(value)
    return made


def offsets(path):
    """Return the offset of each external weight of a file."""
    proto = onnx.load(path, load_external_data=False)
    entries = {t.name: {e.key: e.value for e in t.external_data} for t in proto.graph.initializer}
    return {name: int(entry["offset"]) for name, entry in entries.items() if entry}


def test_equal_weights_of_all_models_stand_once(tmp_path):
    first = model(a=ONES, b=ONES, c=ZEROS)
    second = model(c=ZEROS, d=NEGATIVE, b=2 * ONES)
    *paths, data = smelt.save_shared({"one.onnx": first, "two.onnx": second}, tmp_path / "out")
    assert data.stat().st_size == 4 * ONES.nbytes
    one, two = map(offsets, paths)
    assert one["a"] == one["b"]
    assert one["c"] == two["c"]
    assert len({*one.values(), *two.values()}) == 4, "-0 is not 0"
    for path, source in zip(paths, (first, second), strict=True):
        assert smelt.verify(source, path).ok
        assert offsets(path).keys() == {*source.graph.initializers}


def test_weights_of_other_types_and_shapes_stay_apart(tmp_path):
    made = model(a=ZEROS)
    for name, array in {"i": np.zeros(SIZE, np.int32), "m": ZEROS.reshape(8, 12)}.items():
        made.graph.register_initializer(
            ir.Value(name=name, const_value=ir.tensor(array, name=name))
        )
    paths = smelt.save_shared({"m.onnx": made}, tmp_path)
    assert len(set(offsets(paths[0]).values())) == 3


def test_a_folder_may_be_written_over_its_own_models(tmp_path):
    paths = smelt.save_shared({"m.onnx": model(a=ONES), "n.onnx": model(b=ZEROS)}, tmp_path)
    again = smelt.save_shared({"n.onnx": paths[1], "m.onnx": paths[0]}, tmp_path)
    assert smelt.verify(model(a=ONES), again[1]).ok
    assert smelt.verify(model(b=ZEROS), again[0]).ok


@pytest.mark.parametrize(
    ("names", "folder", "code"),
    [
        (("model.onnx_data",), "out", "E669"),
        (("a/m.onnx",), "out", "E669"),
        (("..",), "out", "E669"),
        (("m.onnx",), "no/out", "E614"),
        (("m.onnx",), "file", "E614"),
    ],
)
def test_a_wrong_destination_is_refused(tmp_path, names, folder, code):
    (tmp_path / "file").touch()
    with pytest.raises(SmeltError) as refused:
        smelt.save_shared(dict.fromkeys(names, model(a=ONES)), tmp_path / folder)
    assert refused.value.code == code
    assert not (tmp_path / "out").exists()
