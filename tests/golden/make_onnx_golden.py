"""Writes the golden answers that onnx_golden_test.cc compares with: onnxruntime's, to drawn inputs, of the models that
the test exports.
Run: python tests/golden/make_onnx_golden.py build/release/golden_test   (needs numpy, onnxruntime)
"""

import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy
import onnxruntime

HERE = pathlib.Path(__file__).parent
BATCH = 3
BOUNDS = {("gpt", "input_ids"): 50, ("encoder", "input_ids"): 40, ("tabular", "ids"): 11,
          ("hf_bert", "input_ids"): 40, ("hf_roberta", "input_ids"): 40, ("hf_distilbert", "input_ids"): 40}


def save(path, tensors, metadata):
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    kinds = {"float32": "F32", "int64": "I64"}
    for name, tensor in tensors.items():
        blob = numpy.ascontiguousarray(tensor).tobytes()
        header[name] = {"dtype": kinds[str(tensor.dtype)], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def graph_bytes(model):
    """Field 7 of the model, as it lies in the file."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = model[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(model):
        key = varint()
        if key & 7 == 0:
            varint()
            continue
        size = varint()
        if key >> 3 == 7:
            return model[at:at + size]
        at += size
    raise ValueError("no graph")


def drawn(family, port, draw):
    shape = [BATCH if isinstance(extent, str) else extent for extent in port.shape]
    if port.type == "tensor(float)":
        return draw.standard_normal(shape, dtype=numpy.float32)
    if port.name == "attention_mask":  # rows of different lengths
        return (numpy.arange(shape[1])[None, :] < numpy.array([[shape[1]], [4], [1]])).astype(numpy.int64)
    return draw.integers(0, BOUNDS.get((family, port.name), 2), shape, dtype=numpy.int64)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    draw = numpy.random.default_rng(7)
    (HERE / "onnx").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "--gtest_filter=OnnxGolden.*"], check=True,
                       env={**os.environ, "LOCKSTEP_WRITE_ONNX": folder}, stdout=subprocess.DEVNULL)
        for path in sorted(pathlib.Path(folder).glob("*.onnx")):
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            inputs = {port.name: drawn(path.stem, port, draw) for port in session.get_inputs()}
            names = [port.name for port in session.get_outputs()]
            outputs = dict(zip(names, session.run(names, inputs)))
            metadata = {"graph_sha256": hashlib.sha256(graph_bytes(path.read_bytes())).hexdigest(),
                        "onnxruntime": onnxruntime.__version__}
            save(HERE / "onnx" / f"{path.stem}.safetensors", {**inputs, **outputs}, metadata)
            print(path.stem, {name: list(value.shape) for name, value in outputs.items()})


if __name__ == "__main__":
    main()
