"""Records of files as the inputs of exported models, by what docs/export.md says, so that onnxruntime can be asked what
`lockstep predict` was asked: the pages' recipes are checked with the models. Each function writes files of a family, says what
job trains on them, and gives (inputs of the model, how the outputs compare with a line of predictions).
"""

import csv
import io
import json
import math
import random
import struct
import zlib

WORDS = "alpha beta gamma delta epsilon zeta".split()
SIZE = 32  # of images


def words(draws, most):
    return " ".join(draws.choice(WORDS) for _ in range(draws.randint(1, most)))


# ---- tables ----------------------------------------------------------------------------------------------------------


def bucket(text, buckets):
    """The row of a category."""
    if text == "":
        return 0
    x = 0xCBF29CE484222325
    for byte in text.encode():
        x = (x ^ byte) * 0x100000001B3 % 2**64
    x = (x ^ x >> 32) * 0xFF51AFD7ED558CCD % 2**64
    return 1 + ((x ^ x >> 32) >> 32) * (buckets - 1) // 2**32


def number(text, entry):
    if entry.get("missing"):
        return float(text == "")
    if text == "":
        return entry["fill"]
    x = float(text)
    if entry["log1p"]:
        x = math.log1p(x) if x >= 0 else -math.log1p(-x)
    return max(-10.0, min(10.0, (x - entry["mean"]) / entry["deviation"]))


class Tabular:
    job = """
model: {family: tabular, dim: 8, rows: 500, bottom: [32, 16], top: [32, 16]}
data: {train: {format: csv, files: DATA, label: risky}, hold_out: 0.1}
"""
    suffix = "csv"

    def write(self, path):
        draws = random.Random(7)
        rows = ["amount,age,country,shop,risky"]
        for _ in range(400):
            amount = "" if draws.random() < 0.1 else f"{draws.lognormvariate(3, 2):.2f}"
            shop = "" if draws.random() < 0.1 else f"shop {draws.randint(0, 60)}"
            rows.append(f"{amount},{draws.randint(18, 90)},{draws.choice(WORDS)},{shop},{int(draws.random() < 0.3)}")
        path.write_text("\n".join(rows) + "\n")

    def inputs(self, path, description):
        import numpy

        records = list(csv.DictReader(io.StringIO(path.read_text())))
        encoding = description["encoding"]
        dense = [[number(record[entry["column"]], entry) for entry in encoding["dense"]] for record in records]
        ids = [[bucket(record[entry["column"]], entry["buckets"]) for entry in encoding["ids"]] for record in records]
        return {"dense": numpy.array(dense, numpy.float32), "ids": numpy.array(ids, numpy.int64)}

    def answers(self, outputs, _):
        return [[p] for p in outputs["probability"]]

    def predicted(self, line):
        return [float(line["probability"])]


# ---- texts and tokens ------------------------------------------------------------------------------------------------


class Encoder:
    job = """
model: {family: encoder, layers: 2, dim: 32, heads: 4, vocab: 300, seq: 24, classes: 3}
data: {train: {format: csv, files: DATA, text: text, label: label}}
"""
    suffix = "csv"
    seq = 24

    def write(self, path):
        draws = random.Random(8)
        path.write_text("text,label\n" + "".join(f"{words(draws, 6)},{i % 3}\n" for i in range(200)))

    def inputs(self, path, _):
        import numpy

        records = list(csv.DictReader(io.StringIO(path.read_text())))
        tokens = numpy.zeros((len(records), self.seq), numpy.int64)
        mask = numpy.zeros_like(tokens)
        for row, record in enumerate(records):
            text = [0, *(byte + 1 for byte in record["text"].encode())][: self.seq]
            tokens[row, : len(text)] = text
            mask[row, : len(text)] = 1
        return {"input_ids": tokens, "attention_mask": mask, "token_type_ids": numpy.zeros_like(tokens)}

    def answers(self, outputs, _):
        return [list(row) for row in outputs["probabilities"]]

    def predicted(self, line):
        return [float(line[f"probability.{c}"]) for c in range(3)]


class Gpt:
    job = """
model: {family: gpt, layers: 2, dim: 32, heads: 4, vocab: 256, seq: 24}
data: {train: {format: text, files: DATA}}
"""
    suffix = "txt"
    seq = 24

    def write(self, path):
        draws = random.Random(9)
        path.write_text(" ".join(words(draws, 6) for _ in range(300)))

    def rows(self, path):
        import numpy

        text = numpy.frombuffer(path.read_bytes(), numpy.uint8).astype(numpy.int64)
        return [text[i : i + self.seq + 1] for i in range(0, len(text) - self.seq, self.seq)]

    def inputs(self, path, _):
        import numpy

        return {"input_ids": numpy.array([row[:-1] for row in self.rows(path)])}

    def answers(self, outputs, path):
        """The mean loss of a row's next tokens."""
        import numpy

        logits = outputs["logits"].astype(numpy.float64)
        logits -= logits.max(axis=2, keepdims=True)
        losses = numpy.log(numpy.exp(logits).sum(axis=2))
        targets = numpy.array([row[1:] for row in self.rows(path)])
        losses -= numpy.take_along_axis(logits, targets[:, :, None], axis=2)[:, :, 0]
        return [[mean] for mean in losses.mean(axis=1)]

    def predicted(self, line):
        return [float(line["loss"])]


# ---- images ----------------------------------------------------------------------------------------------------------


def png(pixels):
    """The bytes of a PNG of 8-bit colours; pixels: SIZE rows of SIZE (red, green, blue)."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in pixels)
    header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


class Resnet:
    job = f"""
model: {{family: resnet, depth: 18, width: 8, image: {SIZE}, classes: 3}}
data: {{train: {{format: images, files: DATA}}}}
"""
    suffix = "images"

    def write(self, path):
        draws = random.Random(10)
        for label in range(3):
            (path / str(label)).mkdir(parents=True)
            for i in range(20):
                pixels = [[[draws.randrange(256) for _ in range(3)] for _ in range(SIZE)] for _ in range(SIZE)]
                (path / str(label) / f"{i:02}.png").write_bytes(png(pixels))

    def inputs(self, path, description):
        import numpy

        images = description["images"]
        assert images["size"] == images["resize"] == SIZE, images
        rows = []
        for file in sorted(path.glob("*/*.png")):
            data = file.read_bytes()
            start = data.index(b"IDAT") + 4
            (size,) = struct.unpack(">I", data[start - 8 : start - 4])
            lines = numpy.frombuffer(zlib.decompress(data[start : start + size]), numpy.uint8)
            pixels = lines.reshape(SIZE, 1 + SIZE * 3)[:, 1:].reshape(SIZE, SIZE, 3) / 255
            rows.append((pixels - numpy.array(images["mean"])) / numpy.array(images["deviation"]))
        return {"images": numpy.array(rows, numpy.float32)}

    def answers(self, outputs, _):
        return [list(row) for row in outputs["probabilities"]]

    def predicted(self, line):
        return [float(line[f"probability.{c}"]) for c in range(3)]


FAMILIES = {"tabular": Tabular(), "encoder": Encoder(), "gpt": Gpt(), "resnet": Resnet()}


def lines_of(path):
    """The predictions of a JSONL file."""
    return [json.loads(line) for line in path.read_text().splitlines()]
