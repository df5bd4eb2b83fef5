"""What the parameters that many functions share mean: for `describe` at the end of a module."""

from __future__ import annotations

from perspex.arguments.sharded import WORDS

NOT_AN_ARRAY = "TypeError: if an argument is a list or anything else that is not an array."

SIZES = "TypeError: for sizes that are negative, traced or not integers, and for a wrong `dtype`."

LIES = {"out_sharding": WORDS}
SHAPE = {
    "shape": "an integer or a sequence of them, known while tracing.",
    "dtype": "the default floating dtype if not given.",
    "device": "where to put the array; the default device if not given.",
}
LIKE = {
    "a": "an array, a number, or a description with `shape` and `dtype`.",
    "dtype": "the dtype of the result; that of the prototype if not given.",
    "shape": "the shape of the result; that of the prototype if not given.",
    "device": "where to put the array; where the prototype is if not given.",
}
SAMPLES = {
    "start": "where to begin: a real number, known while tracing.",
    "stop": "where to end, itself left out; if it is not given, the range goes from 0 to `start`.",
    "step": "the distance; 1 if not given.",
    "num": "how many numbers, known while tracing.",
    "endpoint": "whether `stop` is the last one, or would come after it.",
    "dtype": "the dtype of the result; by default the one that the numbers promote to.",
    "axis": "the axis of the samples in the result.",
    "device": "where to put the array; the default device if not given.",
}
DIAGONAL = {"k": "which diagonal; positive above the main one."}
PRINTED = {
    "max_line_width": "how many characters a line may have; 75 if not given.",
    "precision": "how many digits to write after the point.",
    "suppress_small": "write numbers close to zero as zero.",
}
JOINED = {
    "out": "only None: arrays never change.",
    "dtype": "the dtype of the result; by default the one that the arrays promote to.",
}
INDEXED = {
    "out": "only None: arrays never change.",
    "inplace": "must be False, because arrays never change.",
    "unique_indices": "promises that no index comes twice.",
    "indices_are_sorted": "promises that the indices ascend.",
    "fill_value": "by default NaN for floats, the least integer, the greatest unsigned one.",
    "wrap_negative_indices": "count negative indices from the end.",
}
TRANSFORMED = {
    "a": "an array of numbers.",
    "n": "the size to transform, to which the input is cut or filled up with zeros; by default\n"
    "that of the input. Where the result is real it is the size of the result.",
    "s": "`n` for each of the axes.",
    "axis": "the axis to transform.",
    "axes": "the axes to transform; None is the last `len(s)` axes, or all of them.",
    "norm": 'where the factor `1 / n` goes: `"backward"` (the default) into the inverse,\n'
    '`"forward"`, or `"ortho"`, its root into both.',
}
NO_TRANSFORM = (
    "TypeError: for lists, and for sizes that are not integers.\n"
    "ValueError: for axes that do not exist or come twice, sizes below 1, and an unknown `norm`."
)
MATRIX = {
    "a": "matrices of shape `(..., n, n)`.",
    "UPLO": 'the triangle to read, `"L"` or `"U"`, where `symmetrize_input` is false.',
    "symmetrize_input": "take `(a + a^H) / 2`; else only one triangle is read.",
    "precision": "how exactly accelerators multiply.",
    "preferred_element_type": "the dtype of the result; by default that of the operands.",
    **LIES,
}
NOT_SQUARE = (
    "TypeError: if `a` is not an array of numbers.\nValueError: for matrices that are not square."
)
