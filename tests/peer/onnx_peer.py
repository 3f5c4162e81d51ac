"""Exported models in onnxruntime: trained runs of all four families give there what `lockstep` answers itself, within
1e-5, for batches of any size, with weights inline and in a file of their own; and what `lockstep predict` answers to records
of files, where the inputs are made by the recipes of docs/export.md (onnx_records.py). Called with the path of the program; exits
with 77 (skipped) where the Python of LOCKSTEP_PEERS_PYTHON has no onnxruntime.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

from onnx_records import FAMILIES, lines_of

SKIPPED = 77
ROWS = 16
TOLERANCE = 1e-5
# Behind 53 convolutions fp32 itself is not that sure: with and without its optimisations onnxruntime's own logits differ by
# 3.7e-5, and they lie 3.0e-5 from the same model in double precision, ours 2.7e-5.
TOLERANCES = {"resnet50": 1e-4}

JOBS = {
    "gpt": """
model: {family: gpt, layers: 2, dim: 32, heads: 4, vocab: 64, seq: 24}
data: {train: {format: synthetic, samples: 200}}
""",
    "encoder": """
model: {family: encoder, layers: 2, dim: 32, heads: 4, vocab: 64, seq: 24, classes: 3}
data: {train: {format: synthetic, samples: 200}}
""",
    "tabular": """
model: {family: tabular, dim: 8, rows: 500, bottom: [32, 16], top: [32, 16]}
data: {train: {format: synthetic, samples: 2000}, hold_out: 0.1}
""",
    "resnet": """
model: {family: resnet, depth: 18, width: 8, image: 32, classes: 5}
data: {train: {format: synthetic, samples: 200}}
""",
    "resnet50": """
model: {family: resnet, depth: 50, width: 8, image: 32, classes: 5}
data: {train: {format: synthetic, samples: 200}}
""",
}
TRAINING = """
name: {name}
train: {{steps: 20, global_batch: 16, microbatch: 8, lr: {{base: 3e-3}}}}
"""


def load(path):
    """The tensors of a safetensors file."""
    import numpy

    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    kinds = {"F32": numpy.float32, "I64": numpy.int64}
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = numpy.frombuffer(data[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def compare(model, sample, rows, tolerance):
    import numpy
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    inputs = {port.name: sample[port.name][:rows] for port in session.get_inputs()}
    names = [port.name for port in session.get_outputs()]
    worst = 0
    for name, found in zip(names, session.run(names, inputs)):
        expected = sample[name][:rows]
        assert found.shape == expected.shape and found.dtype == expected.dtype, (name, found.shape, expected.shape)
        difference = numpy.abs(found - expected) / numpy.maximum(1, numpy.abs(expected))
        worst = max(worst, float(difference.max()))
    assert worst <= tolerance, f"{model}: {worst} with {rows} rows"
    return worst


def check_model(path):
    """The format's own checker, where it is installed."""
    try:
        import onnx
    except ImportError:
        return
    onnx.checker.check_model(str(path), full_check=True)


def check_predictions(program, folder, name):
    import numpy
    import onnxruntime

    family = FAMILIES[name]
    data, job = folder / f"records.{family.suffix}", folder / "job.yaml"
    family.write(data)
    job.write_text(family.job.replace("DATA", str(data)) + TRAINING.format(name=name))

    def lockstep(*arguments):
        subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run, model, predictions = folder / "run", folder / f"{name}.onnx", folder / "predictions.jsonl"
    lockstep("train", job, "--set", f"output={run}")
    lockstep("export", run, "--to", "onnx", "--out", model)
    lockstep("predict", run, "--data", data, "--out", predictions)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    inputs = family.inputs(data, json.loads((folder / f"{name}.inputs.json").read_text()))
    names = [port.name for port in session.get_outputs()]
    answers = family.answers(dict(zip(names, session.run(names, inputs))), data)
    expected = [family.predicted(line) for line in lines_of(predictions)]
    assert len(answers) == len(expected) > 50, (name, len(answers), len(expected))
    worst = float(numpy.abs(numpy.array(answers, numpy.float64) - numpy.array(expected)).max())
    assert worst <= TOLERANCE, f"{name}: {worst} from the predictions"
    print(f"{name}: {len(expected)} predictions, at most {worst:.2g} from onnxruntime's")


def check_family(program, folder, name):
    job = folder / f"{name}.yaml"
    job.write_text(JOBS[name] + TRAINING.format(name=name))

    def lockstep(*arguments):
        subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    lockstep("train", job, "--set", f"output={folder / name}")
    inline, apart = folder / f"{name}.onnx", folder / f"{name}-apart.onnx"
    lockstep("export", folder / name, "--to", "onnx", "--out", inline, "--sample", ROWS)
    lockstep("export", folder / name, "--to", "onnx", "--out", apart, "--external-data")
    sample = load(folder / f"{name}.sample.safetensors")
    worst = 0
    for path, rows in ((inline, ROWS), (inline, 1), (inline, 5), (apart, ROWS)):
        check_model(path)
        worst = max(worst, compare(path, sample, rows, TOLERANCES.get(name, TOLERANCE)))
    print(f"{name}: at most {worst:.2g} from onnxruntime's answers")


def main():
    python = os.environ.get("LOCKSTEP_PEERS_PYTHON")
    if python and "again" not in sys.argv:
        os.execv(python, [python, __file__, sys.argv[1], "again"])
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        print("SKIPPED: the Python of the peers has no onnxruntime")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        for name in JOBS:
            check_family(sys.argv[1], pathlib.Path(folder), name)
    for name in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            check_predictions(sys.argv[1], pathlib.Path(folder), name)


if __name__ == "__main__":
    main()
