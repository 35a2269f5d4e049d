"""Shape rules for operators of ai.onnx.ml that onnx-shape-inference, the library, lacks."""

from __future__ import annotations

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.shapes.shape_registry import registry

ML = "ai.onnx.ml"
FLOAT, INT64, STRING = ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.STRING


def register_ml() -> None:
    """Register the rules; call this once."""
    for op_type in ("Scaler", "Normalizer"):
        registry.register(ML, op_type, since_version=1)(_float_of_same_shape)
    registry.register(ML, "ArrayFeatureExtractor", since_version=1)(_array_feature_extractor)
    registry.register(ML, "Imputer", since_version=1)(_same_type_and_shape)
    for op_type in ("LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor"):
        registry.register(ML, op_type, since_version=1)(_regressor)
    for op_type in ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"):
        registry.register(ML, op_type, since_version=1)(_classifier)


def scores_of(node: ir.Node) -> int | None:
    """Return the number of scores per row that ONNX Runtime computes for a classifier.

    It depends on the number of labels and, for a linear model, on that of intercepts. A support
    vector machine without probabilities has one score for each pair of classes. None if unknown.
    """
    attributes = node.attributes
    labels = len(
        attributes.get_ints("classlabels_ints", ()) or attributes.get_ints("classlabels_int64s", ())
    )
    labels = labels or len(attributes.get_strings("classlabels_strings", ()))
    if node.op_type == "TreeEnsembleClassifier":
        return labels or None
    if node.op_type == "LinearClassifier":
        computed = len(attributes.get_floats("intercepts", ()))
        return 2 if computed == 1 and labels == 2 else computed or None
    if attributes.get_ints("vectors_per_class", ()) and not attributes.get_floats("prob_a", ()):
        return labels * (labels - 1) // 2 if labels > 2 else 2
    return labels or None


def _float_of_same_shape(context: ShapeInferenceContext, node: ir.Node) -> None:
    """Infer a float result of the shape of the input."""
    source = node.inputs[0]
    if source is not None and source.shape is not None:
        context.set_shape_and_dtype(node.outputs[0], source.shape, FLOAT)


def _same_type_and_shape(context: ShapeInferenceContext, node: ir.Node) -> None:
    """Infer a result of the type and shape of the input."""
    source = node.inputs[0]
    if source is not None and source.shape is not None:
        context.set_shape_and_dtype(node.outputs[0], source.shape, source.dtype)


def _array_feature_extractor(context: ShapeInferenceContext, node: ir.Node) -> None:
    """Infer ArrayFeatureExtractor: one column per index.

    The library counts only the last dim of the indices.
    """
    source, places = node.inputs
    if source is None or source.shape is None or places is None or places.shape is None:
        return
    count: int | ir.SymbolicDim = 1
    for dim in places.shape.dims:
        if dim != 1:
            count = dim if count == 1 else count * dim
    rows = source.shape.dims[:-1] if len(source.shape) > 1 else (1,)
    context.set_shape_and_dtype(node.outputs[0], ir.Shape([*rows, count]), source.dtype)


def _row_count(node: ir.Node) -> int | ir.SymbolicDim | None:
    """Return the number of rows: dim 0 of a matrix, 1 for a vector, else None."""
    source = node.inputs[0]
    if source is None or source.shape is None or len(source.shape) not in (1, 2):
        return None
    return source.shape[0] if len(source.shape) == 2 else 1


def _regressor(context: ShapeInferenceContext, node: ir.Node) -> None:
    """Infer a regressor: one float per row and target."""
    rows = _row_count(node)
    if rows is not None:
        name = "n_targets" if node.op_type == "TreeEnsembleRegressor" else "targets"
        targets = node.attributes.get_int(name, 1) if node.op_type != "SVMRegressor" else 1
        context.set_shape_and_dtype(node.outputs[0], ir.Shape([rows, targets]), FLOAT)


def _classifier(context: ShapeInferenceContext, node: ir.Node) -> None:
    """Infer a classifier: one label per row, and one float per row and score."""
    rows, scores = _row_count(node), scores_of(node)
    if rows is None or scores is None:
        return
    labels = STRING if node.attributes.get_strings("classlabels_strings", ()) else INT64
    context.set_shape_and_dtype(node.outputs[0], ir.Shape([rows]), labels)
    if len(node.outputs) > 1:
        context.set_shape_and_dtype(node.outputs[1], ir.Shape([rows, scores]), FLOAT)
