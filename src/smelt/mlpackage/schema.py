"""The messages of Core ML's format that ML Programs use: number, name and kind of each field.

Source: the public ``.proto`` files of the Core ML specification (Model, FeatureTypes, MIL). A kind
is a scalar (``int``, ``bool``, ``string``, ``bytes``), a packed array (``ints``, ``floats``,
``doubles``, ``bools``) or a message; ``*`` marks a repeated field, ``map`` a map from strings.
"""

from __future__ import annotations

from typing import NamedTuple

_TABLE = """
Model: 1 specificationVersion int, 2 description ModelDescription, 502 mlProgram Program
ModelDescription: 1 input FeatureDescription*, 10 output FeatureDescription*,
  13 state FeatureDescription*, 20 functions FunctionDescription*, 21 defaultFunctionName string,
  11 predictedFeatureName string, 12 predictedProbabilitiesName string, 100 metadata Metadata
FunctionDescription: 1 name string, 2 input FeatureDescription*, 3 output FeatureDescription*,
  6 state FeatureDescription*, 4 predictedFeatureName string, 5 predictedProbabilitiesName string
Metadata: 1 shortDescription string, 2 versionString string, 3 author string, 4 license string,
  100 userDefined map string
FeatureDescription: 1 name string, 2 shortDescription string, 3 type FeatureType
FeatureType: 1 int64Type bytes, 2 doubleType bytes, 3 stringType bytes, 4 imageType ImageType,
  5 multiArrayType ArrayType, 6 dictionaryType bytes, 7 sequenceType bytes,
  8 stateType StateFeature, 1000 isOptional bool
StateFeature: 1 arrayType ArrayType
ArrayType: 1 shape ints, 2 dataType int, 21 enumeratedShapes Shapes, 31 shapeRange ShapeRange,
  41 intDefaultValue int
Shapes: 1 shapes Shape*
Shape: 1 shape ints
ShapeRange: 1 sizeRanges SizeRange*
SizeRange: 1 lowerBound int, 2 upperBound int
ImageType: 1 width int, 2 height int, 3 colorSpace int, 21 enumeratedSizes ImageSizes,
  31 imageSizeRange ImageSizeRange
ImageSizes: 1 sizes ImageSize*
ImageSize: 1 width int, 2 height int
ImageSizeRange: 1 widthRange SizeRange, 2 heightRange SizeRange
Program: 1 version int, 2 functions map Function, 3 docString string, 4 attributes map Value
Function: 1 inputs NamedValueType*, 2 opset string, 3 block_specializations map Block,
  4 attributes map Value
Block: 1 inputs NamedValueType*, 2 outputs string*, 3 operations Operation*, 4 attributes map Value
Operation: 1 type string, 2 inputs map Argument, 3 outputs NamedValueType*, 4 blocks Block*,
  5 attributes map Value
Argument: 1 arguments Binding*
Binding: 1 name string, 2 value Value
NamedValueType: 1 name string, 2 type ValueType
ValueType: 1 tensorType TensorType, 2 listType ListType, 3 tupleType TupleType,
  4 dictionaryType DictionaryType, 5 stateType StateType
TensorType: 1 dataType int, 2 rank int, 3 dimensions Dimension*, 4 attributes map Value
TupleType: 1 types ValueType*
ListType: 1 type ValueType, 2 length Dimension
DictionaryType: 1 keyType ValueType, 2 valueType ValueType
StateType: 1 wrappedType ValueType
Dimension: 1 constant ConstantDimension, 2 unknown UnknownDimension
ConstantDimension: 1 size int
UnknownDimension: 1 variadic bool
Value: 1 docString string, 2 type ValueType, 3 immediateValue ImmediateValue,
  5 blobFileValue BlobFileValue
ImmediateValue: 1 tensor TensorValue, 2 tuple ListValue, 3 list ListValue, 4 dictionary Pairs
BlobFileValue: 1 fileName string, 2 offset int
TensorValue: 1 floats Floats, 2 ints Ints, 3 bools Bools, 4 strings Strings, 5 longInts Ints,
  6 doubles Doubles, 7 bytes Bytes
Floats: 1 values floats
Ints: 1 values ints
Bools: 1 values bools
Doubles: 1 values doubles
Strings: 1 values string*
Bytes: 1 values bytes
ListValue: 1 values Value*
Pairs: 1 values Pair*
Pair: 1 key Value, 2 value Value
"""

OTHER_MODELS = {
    200: "pipelineClassifier",
    201: "pipelineRegressor",
    202: "pipeline",
    300: "glmRegressor",
    301: "supportVectorRegressor",
    302: "treeEnsembleRegressor",
    303: "neuralNetworkRegressor",
    304: "bayesianProbitRegressor",
    400: "glmClassifier",
    401: "supportVectorClassifier",
    402: "treeEnsembleClassifier",
    403: "neuralNetworkClassifier",
    404: "kNearestNeighborsClassifier",
    500: "neuralNetwork",
    555: "customModel",
    556: "linkedModel",
    560: "classConfidenceThresholding",
    600: "oneHotEncoder",
    601: "imputer",
    602: "featureVectorizer",
    603: "dictVectorizer",
    604: "scaler",
    606: "categoricalMapping",
    607: "normalizer",
    609: "arrayFeatureExtractor",
    610: "nonMaximumSuppression",
    900: "identity",
    2000: "textClassifier",
    2001: "wordTagger",
    2002: "visionFeaturePrint",
    2003: "soundAnalysisPreprocessing",
    2004: "gazetteer",
    2005: "wordEmbedding",
    2006: "audioFeaturePrint",
    3000: "serializedModel",
}
"""Model types of the format that are not ML Programs: field number of ``Model`` to name."""


class Field(NamedTuple):
    """A field of a message; ``repeated`` is ``""``, ``"*"`` or ``"map"``."""

    number: int
    name: str
    kind: str
    repeated: str


def _parse(table: str) -> dict[str, tuple[Field, ...]]:
    """Return the fields of each message in order of their numbers."""
    messages: dict[str, tuple[Field, ...]] = {}
    for entry in table.replace("\n  ", " ").strip().splitlines():
        message, _, fields = entry.partition(": ")
        parsed = []
        for text in fields.split(", "):
            number, name, *kind = text.split()
            repeated = "map" if kind[0] == "map" else kind[0][len(kind[0].rstrip("*")) :]
            parsed.append(Field(int(number), name, kind[-1].rstrip("*"), repeated))
        messages[message] = tuple(sorted(parsed))
    others = tuple(Field(number, name, "bytes", "") for number, name in OTHER_MODELS.items())
    messages["Model"] = tuple(sorted((*messages["Model"], *others)))
    return messages


MESSAGES = _parse(_TABLE)
"""The fields of each message by its name."""
