"""Errors in the use of batches of models, batches of rows, and Ray clusters."""

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
        "Two models of a batch would write the same file or folder. Names that differ only in "
        "upper "
        "and lower case are the same name on some systems.",
        "rename one model, or process the two in different batches",
    ),
    "E692": ErrorCode(
        "an option that the batch sets itself",
        "The batch decides where results go and whether to print JSON. With other options that "
        "name a file, every model would overwrite the file of the previous model.",
        "write -o, --json and --report before the --",
    ),
    "E693": ErrorCode(
        "a folder that another batch is using",
        "Two batches in one folder would process the same models twice.",
        "wait for the other batch, or choose another folder",
    ),
    "E694": ErrorCode(
        "no Ray cluster",
        "No Ray cluster of the installed version of ray answers at the address.",
        "use --ray local to start a cluster on this machine; `ray status` shows a running one",
    ),
    "E695": ErrorCode(
        "another smelt on a machine of the cluster",
        "Results of two versions of smelt must not be mixed in one batch, and a machine without "
        "smelt cannot process models.",
        "install the same smelt on every machine",
    ),
    "E696": ErrorCode(
        "a model without rows",
        "A Predictor passes rows to a model and expects one row of results for each. So the first "
        "dim of every input and output must be the batch.",
        "export the model with the batch as first dim, or select other outputs by outputs=",
    ),
    "E697": ErrorCode(
        "a batch that does not fit a Predictor",
        "A column is missing, columns differ in their number of rows, or the number of rows is not "
        "a multiple of the model's batch size and pad=False.",
        'smelt.ray.Predictor("model.onnx", columns={"input": "column"}, pad=True)',
    ),
    "E698": ErrorCode(
        "a checkpoint that cannot be continued",
        "The file is damaged, or holds the state of another contraction, of other operands, or of "
        "other slices.",
        "delete the file, or give the arguments that it was written with",
    ),
}
