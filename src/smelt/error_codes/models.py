"""Errors in models: invalid and hostile files."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E301": ErrorCode(
        "not an ONNX model",
        "The file does not parse as an ONNX model: it is damaged, truncated, or of another format.",
        "check that the file is whole",
    ),
    "E302": ErrorCode(
        "an unreadable model",
        "The file parses as protobuf but does not describe a model, or some part of it "
        "cannot be read.",
        "export the model again",
    ),
    "E303": ErrorCode(
        "a cyclic graph",
        "A value depends on itself, directly or through other nodes.",
        "export the model again; ONNX graphs have no cycles",
    ),
    "E304": ErrorCode(
        "a value is written twice",
        "Two nodes, inputs or initializers of one graph write a value of the same name.",
        "rename one of them",
    ),
    "E305": ErrorCode(
        "a value is never written",
        "A node reads a name that no node, input or initializer in scope writes.",
        "export the model again with its weights",
    ),
    "E306": ErrorCode(
        "an operator set is not imported",
        "A node belongs to a domain that the model does not import.",
        "add the opset import, or the function of that domain",
    ),
    "E307": ErrorCode(
        "an unknown operator",
        "The imported operator set has no operator of that name.",
        "export with the opset that has the operator, or give the node its domain",
    ),
    "E308": ErrorCode(
        "a node does not fit its operator",
        "The inputs, outputs or attributes of a node do not match the schema of its operator.",
        "compare the node with the ONNX operator reference",
    ),
    "E309": ErrorCode(
        "element types that do not match",
        "The operands of a node have element types that its operator does not accept together.",
        "put a Cast between them",
    ),
    "E310": ErrorCode(
        "not ONNX text",
        "The text of a model does not follow the textual syntax of ONNX.",
        "compare it with the examples in docs/add-a-pass.md",
    ),
    "E311": ErrorCode(
        "a tensor is inconsistent",
        "The data of a tensor do not fill its dims, or it has no element type.",
        "copy the file again, or export it again with another release of the exporter",
    ),
    "E312": ErrorCode(
        "graphs are nested too deep",
        "Subgraphs are nested deeper than any real model needs.",
        "flatten the model",
    ),
    "E313": ErrorCode(
        "external data outside the model's folder",
        "Weights are read only from plain files inside the folder of the model: no links, no "
        "absolute paths, no `..`.",
        "keep weights as plain files in the folder of the model",
    ),
    "E314": ErrorCode(
        "wrong external data",
        "The file that holds a weight is missing or too short, or its description has keys that "
        "ONNX does not define.",
        "copy the weight files along with the model",
    ),
    "E315": ErrorCode(
        "a name that is not text",
        "A name in the model is not UTF-8.",
        "export the model again",
    ),
    "E316": ErrorCode(
        "a function calls itself",
        "Functions of a model may call each other, but a function must not call itself, not even "
        "through other functions.",
        "export the model again",
    ),
    "E317": ErrorCode(
        "shapes contradict each other",
        "Shape inference finds two different sizes for one dim, or a node would fail in every run "
        "with the shapes of its operands or the values of its attributes.",
        "export the model again, or correct the declared shapes",
    ),
    "E318": ErrorCode(
        "a declared type without an element type",
        "An input has no type, or a declared type has no element type, or one that does not exist.",
        "export the model again with typed inputs",
    ),
    "E319": ErrorCode(
        "a version that does not exist",
        "The IR version or an imported operator set is missing, contradicts another, or is "
        "newer than the installed onnx knows. Or a function imports another opset than the "
        "model, and one of its operators differs between the two.",
        "install a newer onnx, or export the model for a lower opset",
    ),
    "E320": ErrorCode(
        "the model is refused",
        "The runtime does not load the model, because the model breaks the ONNX specification.",
        "`smelt inspect model.onnx`, then export the model again",
    ),
    "E321": ErrorCode(
        "the model fails while it runs",
        "The model loads, but an operator gets invalid inputs, for instance an index out of "
        "range, or shapes that do not fit at the chosen sizes. Commands with random inputs try "
        "other sizes first.",
        "give inputs that the model accepts, or the sizes of dims that it accepts: --dim T=64",
    ),
    "E322": ErrorCode(
        "a subgraph does not fit its node",
        "A branch or a loop body has another number of inputs or outputs than the node that "
        "runs it.",
        "export the model again",
    ),
    "E323": ErrorCode(
        "two functions or parameters of one name",
        "Two functions of a model have the same domain, name and overload, or a function has two "
        "parameters of the same name.",
        "rename one of them",
    ),
    "E324": ErrorCode(
        "a malformed attribute",
        "An attribute occurs twice, has no type, has a value of another type, or refers to an "
        "attribute that its function does not have.",
        "export the model again",
    ),
    "E325": ErrorCode(
        "a name is missing",
        "An input, an output, a weight, a function or the operator of a node has no name.",
        "export the model again",
    ),
    "E331": ErrorCode(
        "a matrix is singular",
        "The model checks a triangular factor by smelt.ValidateNonsingular. Here, the factor "
        "has a zero on the diagonal or a number that is not finite.",
        "give matrices that can be inverted, or remove the check from the model",
    ),
    "E330": ErrorCode(
        "an extension operator is used wrongly",
        "A node of a domain beyond ONNX lacks an attribute, or has an attribute that is unknown or "
        "has the wrong type.",
        "export the model with the same version of smelt that loads it",
    ),
    "E340": ErrorCode(
        "a checkpoint that does not fit the model",
        "Weights of the model are missing in the checkpoint, the checkpoint has weights that the "
        "model lacks, or some have another shape or element type.",
        'smelt.fill_weights(model, "weights.safetensors", names={"kernel": "dense.kernel"})',
    ),
    "E341": ErrorCode(
        "an unreadable checkpoint",
        "The file is damaged, an index names missing files, or the format is unknown. smelt reads "
        "safetensors, GGUF, npz and the folders of orbax.",
        "smelt convert pkg.mod:fn --input 'f32[B,8]' --weights weights.safetensors -o fn.onnx",
    ),
    "E342": ErrorCode(
        "a weight without numbers",
        "A function traced with abstract weights gives a model that can be optimized, but not run "
        "or saved until a checkpoint fills its weights.",
        'smelt.fill_weights(model, "weights.safetensors")',
    ),
}
