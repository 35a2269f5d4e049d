"""Usage of batches, of models and of rows, and of Ray clusters."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E690": ErrorCode(
        "no model for a batch",
        "A pattern matches no file, or only files in the folder of the results.",
        "smelt batch 'models/**/*.onnx' --do optimize -o out",
    ),
    "E691": ErrorCode(
        "two models with one result",
        "Two models of a batch would write the same file or folder; names that differ in case only "
        "are one name on some systems.",
        "rename one, or give each a batch of its own",
    ),
    "E692": ErrorCode(
        "an option that the batch sets itself",
        "The batch decides where results go and whether to print JSON. With other options that "
        "name a file, every model would overwrite the file of the one before.",
        "write -o, --json and --report before the --",
    ),
    "E693": ErrorCode(
        "a folder that another batch is using",
        "Two batches in one folder would process the same models twice.",
        "wait for the other one, or choose another folder",
    ),
    "E694": ErrorCode(
        "no Ray cluster",
        "Nothing answers at the address as a Ray cluster of this version of ray does.",
        "--ray local starts one on this machine; `ray status` asks the one that runs",
    ),
    "E695": ErrorCode(
        "another smelt on a machine of the cluster",
        "Results of two versions do not belong into one batch, and a machine without smelt cannot "
        "work on it.",
        "install the same smelt on every machine",
    ),
    "E696": ErrorCode(
        "a model without rows",
        "A Predictor gives each row of a batch to a model and takes a row of results for it, so "
        "the first dim of every input and output has to be the batch.",
        "export the model with the batch as first dim, or leave an output out with outputs=",
    ),
    "E697": ErrorCode(
        "a batch that does not fit a Predictor",
        "A column is missing, columns differ in their number of rows, or the rows are no multiple "
        "of the batch that the model takes and may not be padded.",
        'smelt.ray.Predictor("model.onnx", columns={"input": "column"}, pad=True)',
    ),
}
