"""BERT's encoder as an ONNX graph with matrices of 8-bit integers.

onnxruntime executes it (local_encoder.py). The local models differ in the number of layers and in the first
part of the graph, which makes the embeddings of the tokens. Unusual choices were measured.
"""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, numpy_helper
from onnx.parser import parse_model

Floats = npt.NDArray[np.float32]
Tensor = npt.NDArray[np.generic]

# The largest weight as an integer. Processors without instructions for dot products of 8-bit integers add two
# products in 16 bits: 2 * 255 * 64 fits.
WEIGHT_LIMIT = 64


def network(
    inputs: str, embeddings: str, layers: int, read: Callable[[str], Floats], tensors: Mapping[str, Tensor]
) -> ModelProto:
    """The graph from `inputs` and a mask [batch, length] to unit vectors [batch, 1, 384].

    `embeddings` is ONNX text that computes `states0` [batch * length, 384] from the inputs and `tensors`.
    `read` returns a weight by its name in Hugging Face's checkpoints.
    """
    tensors = {**_CONSTANTS, **tensors}
    for layer in (f"encoder.layer.{index}" for index in range(layers)):
        attention = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
        tensors[f"{layer}.attention.bias"] = np.hstack([read(f"{part}.bias") for part in attention])
        matrices = {"attention": np.vstack([read(f"{part}.weight") for part in attention])}
        for name in ("attention.output.dense", "intermediate.dense", "output.dense"):
            matrices[name] = read(f"{layer}.{name}.weight")
            tensors[f"{layer}.{name}.bias"] = read(f"{layer}.{name}.bias")
        for name, matrix in matrices.items():
            integers, scales = _quantised(matrix)
            tensors |= {f"{layer}.{name}.integers": integers, f"{layer}.{name}.scales": scales}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            for part in ("weight", "bias"):
                tensors[f"{layer}.{name}.{part}"] = read(f"{layer}.{name}.{part}")
    parts = [_HEAD.format(inputs), embeddings, *map(_layer, range(layers)), _TAIL.format(layers)]
    model: ModelProto = parse_model("".join(parts) + "}")
    model.graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in tensors.items())
    return model


def _quantised(matrix: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Integers [inputs, outputs] and the scale of each output, of a matrix [outputs, inputs]."""
    scales = np.abs(matrix).max(axis=1) / WEIGHT_LIMIT
    return np.ascontiguousarray(np.rint(matrix / scales[:, None]).astype(np.int8).T), scales


def _layer(index: int) -> str:
    layer = f"encoder.layer.{index}"
    return _LAYER.format(
        index,
        index + 1,
        joined=_product(f"joined{index}", f"states{index}", f"{layer}.attention"),
        mixed=_product(f"mixed{index}", f"contexts{index}", f"{layer}.attention.output.dense"),
        wide=_product(f"wide{index}", f"attended{index}", f"{layer}.intermediate.dense"),
        narrow=_product(f"narrow{index}", f"active{index}", f"{layer}.output.dense"),
    )


def _product(output: str, rows: str, matrix: str) -> str:
    return _PRODUCT.format(output, rows, matrix)


_CONSTANTS = {
    "one": np.array(1, np.float32),
    "last": np.array([-1]),
    "hidden": np.array([384]),
    "three_hidden": np.array([3 * 384]),
    "rows": np.array([-1, 384]),
    "step": np.array(1 / 127, np.float32),
    "zero": np.array(128, np.uint8),
}
# Between the attentions, tokens are the rows of a matrix.
_HEAD = """
<ir_version: 9, opset_import: ["": 20, "com.microsoft": 1]>
encoder ({0}, int32[batch, length] mask) => (float[batch, 1, 384] vectors) {{
    shape = Shape (mask)
    shape_hidden = Concat <axis = 0> (shape, hidden)
    shape_three_hidden = Concat <axis = 0> (shape, three_hidden)
    count = ReduceProd (shape)
    zeros = Expand (zero, count)
"""
# {1} times the matrix {2} in 8-bit integers. Each row has a scale of its own, so a text's vector does not
# depend on the other texts of its batch. The integers of the rows are unsigned, with 128 as zero: onnxruntime
# is many times slower with signed ones.
_PRODUCT = """
    sizes_{0} = Abs ({1})
    largest_{0} = ReduceMax <keepdims = 0> (sizes_{0}, last)
    scales_{0} = Mul (largest_{0}, step)
    integers_{0} = QuantizeLinear <axis = 0> ({1}, scales_{0}, zeros)
    unscaled_{0} = com.microsoft.MatMulIntegerToFloat (
        integers_{0}, "{2}.integers", one, "{2}.scales", zero)
    factors_{0} = Unsqueeze (scales_{0}, last)
    {0} = Mul (unscaled_{0}, factors_{0})
"""
_LAYER = """
    {joined}
    shaped{0} = Reshape (joined{0}, shape_three_hidden)
    query{0}, key{0}, value{0} = Split <axis = -1, num_outputs = 3> (shaped{0})
    attention{0} = com.microsoft.MultiHeadAttention <num_heads = 12> (
        query{0}, key{0}, value{0}, "encoder.layer.{0}.attention.bias", mask)
    contexts{0} = Reshape (attention{0}, rows)
    {mixed}
    a{0} = Add (mixed{0}, "encoder.layer.{0}.attention.output.dense.bias")
    b{0} = Add (a{0}, states{0})
    attended{0} = LayerNormalization <epsilon = 1e-12> (
        b{0}, "encoder.layer.{0}.attention.output.LayerNorm.weight",
        "encoder.layer.{0}.attention.output.LayerNorm.bias")
    {wide}
    active{0} = com.microsoft.BiasGelu (wide{0}, "encoder.layer.{0}.intermediate.dense.bias")
    {narrow}
    c{0} = Add (narrow{0}, "encoder.layer.{0}.output.dense.bias")
    d{0} = Add (c{0}, attended{0})
    states{1} = LayerNormalization <epsilon = 1e-12> (
        d{0}, "encoder.layer.{0}.output.LayerNorm.weight", "encoder.layer.{0}.output.LayerNorm.bias")
"""
# After the normalisation the sum over the mask equals the mean.
_TAIL = """
    states = Reshape (states{0}, shape_hidden)
    axis = Constant <value_ints = [1]> ()
    weights = Cast <to = 1> (mask)
    row = Unsqueeze (weights, axis)
    total = MatMul (row, states)
    vectors = LpNormalization <axis = -1, p = 2> (total)
"""
