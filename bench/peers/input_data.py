"""Writes the data that bench/input.py reads with everybody: the same table as CSV, JSONL, TFRecord and Parquet, a
corpus of tokens, and JPEGs in folders and in tar shards; all from one seed, with the sums that an epoch must have.

Each case is a folder of SHARDS files and truth.json: records, columns, the constants to normalise with, the sums, and
the bytes of its files, in all and without what memory may hold for all epochs. What is there already with the same
description is kept. The writers are those of the formats' own libraries (pyarrow, pandas, TensorFlow, Pillow).
"""

import json
import pathlib
import shutil
import sys

import numpy

SEED = 7
VERSION = 5  # another one writes the data anew
SHARDS = 8
COUNTS, VALUES = 13, 26  # columns of whole numbers and of decimals; the label is the 40th
NAMES = [f"count_{i:02}" for i in range(COUNTS)] + [f"value_{i:02}" for i in range(VALUES)]


# ---- the table -------------------------------------------------------------------------------------------------------


def make_table(rows):
    """Columns by name: whole numbers of 1 to 7 digits, decimals with 2 to 5 places, a label of 0 or 1."""
    random = numpy.random.default_rng(SEED)
    table = {}
    for i in range(COUNTS):
        table[NAMES[i]] = random.integers(0, 10 ** (1 + i % 7), rows)
    for i in range(VALUES):
        table[NAMES[COUNTS + i]] = numpy.round(random.normal(10 * (i % 5), 1 + 3 * (i % 7), rows), 2 + i % 4)
    table["label"] = (random.random(rows) < 0.1).astype(numpy.int64)
    return table


def sums(values):
    """As input_base.py and `lockstep data bench` add up what they were given."""
    values = values.astype(numpy.float64).reshape(len(values), -1)
    return {
        "sum": float(of_records(values).sum()),
        "squares": float((values * values).sum()),
        "width": values.shape[1],
    }


def of_records(values):
    values = values.astype(numpy.float64).reshape(len(values), -1)
    return values @ numpy.arange(1.0, values.shape[1] + 1)


def add(total, part):
    for which in ("sum", "squares"):
        total[which] = total.get(which, 0) + part[which]
    total["width"] = part["width"]


def tie(first, seconds, firsts):
    """What ties the second column of a record to the first: over all records, the product of the first's weighted sum and the
    second's, less the mean of the second's, so that an error that all first columns have in common does not count. `firsts`
    are the allowed ways to make the first column."""
    centred = seconds - seconds.mean()
    return {
        "first": first,
        "mean": float(seconds.mean()),
        "spread": float(numpy.abs(centred).max()),
        "values": [float((centred * one).sum()) for one in firsts],
    }


def table_truth(table):
    """The sums for both ways to normalise: in float64, as Lockstep does, and in float32, as the peers do."""
    dense = numpy.stack([table[name].astype(numpy.float64) for name in NAMES], 1)
    means, deviations = dense.mean(0), dense.std(0)
    exact = ((dense - means) / deviations).astype(numpy.float32)
    short = (dense.astype(numpy.float32) - means.astype(numpy.float32)) * (1 / deviations).astype(numpy.float32)
    return {
        "names": NAMES,
        "means": means.tolist(),
        "deviations": deviations.tolist(),
        "columns": {"dense": [sums(exact), sums(short)], "labels": [sums(table["label"])]},
        "tie": tie("dense", of_records(table["label"]), [of_records(exact), of_records(short)]),
        "tolerance": 1e-9,
    }


def write_csv(part, path):
    import pyarrow
    import pyarrow.csv

    with open(path, "wb") as file:
        file.write((",".join(part) + "\n").encode())
        options = pyarrow.csv.WriteOptions(include_header=False)
        pyarrow.csv.write_csv(pyarrow.table(part), file, options)


def write_jsonl(part, path):
    import pandas

    pandas.DataFrame(part).to_json(path, orient="records", lines=True, double_precision=6)


def write_tfrecord(part, path):
    import tensorflow

    train = tensorflow.train
    columns = [(name, part[name].tolist(), part[name].dtype.kind) for name in part]
    with tensorflow.io.TFRecordWriter(str(path)) as writer:
        for row in range(len(part["label"])):
            features = {
                name: train.Feature(int64_list=train.Int64List(value=[values[row]]))
                if kind == "i"
                else train.Feature(float_list=train.FloatList(value=[values[row]]))
                for name, values, kind in columns
            }
            writer.write(train.Example(features=train.Features(feature=features)).SerializeToString())


def write_parquet(part, path):
    import pyarrow
    import pyarrow.parquet

    part = {name: values if values.dtype.kind == "i" else values.astype(numpy.float32) for name, values in part.items()}
    pyarrow.parquet.write_table(pyarrow.table(part), path)


def dictionary_bytes(path):
    """Of a Parquet file: they belong to all rows of a row group, and whoever keeps them reads the other pages alone."""
    import pyarrow.parquet

    groups = pyarrow.parquet.ParquetFile(path).metadata
    columns = [groups.row_group(g).column(c) for g in range(groups.num_row_groups) for c in range(groups.num_columns)]
    return sum(c.data_page_offset - c.dictionary_page_offset for c in columns if c.has_dictionary_page)


TABLES = {"csv": write_csv, "jsonl": write_jsonl, "tfrecord": write_tfrecord, "parquet": write_parquet}


def write_table(case, folder, records):
    table = make_table(records)
    each = records // SHARDS
    for shard in range(SHARDS):
        part = {name: values[shard * each : (shard + 1) * each] for name, values in table.items()}
        TABLES[case](part, folder / f"part-{shard:03}.{case}")
    return table_truth(table)


# ---- tokens ----------------------------------------------------------------------------------------------------------

T = 1024


def write_tokens(folder, records):
    """Shards of 16-bit tokens as llm.c writes them: 256 numbers of 32 bits, then the tokens."""
    random = numpy.random.default_rng(SEED)
    each = records // SHARDS
    columns = {"tokens": {}, "targets": {}}
    weighted = {"tokens": [], "targets": []}
    for shard in range(SHARDS):
        tokens = random.integers(0, 50257, each * T + 1, dtype=numpy.uint16)
        header = numpy.zeros(256, numpy.int32)
        header[:3] = 20240520, 1, len(tokens)
        (folder / f"part-{shard:03}.bin").write_bytes(header.tobytes() + tokens.tobytes())
        for name, values in (("tokens", tokens[:-1]), ("targets", tokens[1:])):
            add(columns[name], sums(values.reshape(-1, T)))
            weighted[name].append(of_records(values.reshape(-1, T)))
    tokens, targets = map(numpy.concatenate, weighted.values())
    return {
        "columns": {name: [value] for name, value in columns.items()},
        "tie": tie("tokens", targets, [tokens]),
        "tolerance": 1e-11,
        "seq": T,
    }


# ---- images ----------------------------------------------------------------------------------------------------------

CLASSES = 8
BRIGHTER = 12  # than the class before, of 255
PIXELS = 224
CHANNEL_MEANS, CHANNEL_DEVIATIONS = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def make_image(random, label):
    """Smooth colours with edges and some grain, of a photograph's size in bytes; the higher its class, the brighter, so that
    sums show whether labels stay with their images."""
    from PIL import Image

    width, height = (int(random.integers(256, 501)) for _ in range(2))
    coarse = Image.fromarray(random.integers(0, 256, (12, 16, 3), dtype=numpy.uint8))
    pixels = numpy.asarray(coarse.resize((width, height), Image.BICUBIC), numpy.int16) + BRIGHTER * label
    fine = Image.fromarray(random.integers(0, 256, (height // 4, width // 4), dtype=numpy.uint8))
    grain = numpy.asarray(fine.resize((width, height), Image.BILINEAR), numpy.int16) - 128
    return Image.fromarray(numpy.clip(pixels + grain[:, :, None] // 3, 0, 255).astype(numpy.uint8))


def model_input(image):
    """The largest square in the middle, scaled with a triangle filter, normalised."""
    from PIL import Image

    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    small = image.resize((PIXELS, PIXELS), Image.BILINEAR, box=(left, top, left + side, top + side))
    return (numpy.asarray(small, numpy.float64) / 255 - CHANNEL_MEANS) / CHANNEL_DEVIATIONS


def write_jpeg(folder, records):
    """A folder for each class, and the same files once more in tar shards."""
    import io
    import tarfile

    from PIL import Image

    random = numpy.random.default_rng(SEED)
    columns, weighted = {"images": {}, "labels": {}}, []
    (folder / "tar").mkdir()
    tars = [tarfile.open(folder / "tar" / f"part-{shard:03}.tar", "w") for shard in range(SHARDS)]
    for record in range(records):
        label = int(random.integers(CLASSES))
        out = io.BytesIO()
        make_image(random, label).save(out, "JPEG", quality=85)
        path = folder / "images" / f"class-{label}" / f"{record:06}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(out.getvalue())
        for name, content in ((f"{record:06}.jpg", out.getvalue()), (f"{record:06}.cls", str(label).encode())):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tars[record % SHARDS].addfile(member, io.BytesIO(content))
        image = model_input(Image.open(out))[None]
        for name, values in (("images", image), ("labels", numpy.array([label]))):
            add(columns[name], sums(values))
        weighted.append((of_records(image)[0], label))
    for tar in tars:
        tar.close()
    images, labels = numpy.array(weighted).T
    # Nobody else scales with the same bits.
    return {
        "columns": {name: [value] for name, value in columns.items()},
        "tie": tie("images", labels, [images]),
        "tolerance": 0.02,
    }


# ---- all of them -----------------------------------------------------------------------------------------------------


def write(case, folder, records):
    wanted = {"case": case, "records": records, "seed": SEED, "version": VERSION}
    kept = folder / "truth.json"
    if kept.exists():
        truth = json.loads(kept.read_text())
        if all(truth.get(name) == value for name, value in wanted.items()):
            return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    others = {"tokens": write_tokens, "jpeg": write_jpeg}
    truth = others[case](folder, records) if case in others else write_table(case, folder, records)
    truth |= wanted
    read = folder / "images" if case == "jpeg" else folder
    truth["bytes"] = sum(path.stat().st_size for path in read.rglob("*") if path.is_file())
    held = sum(map(dictionary_bytes, folder.glob("part-*"))) if case == "parquet" else 0
    truth["bytes_of_an_epoch"] = truth["bytes"] - held
    kept.write_text(json.dumps(truth))


def main():
    case, folder, records = sys.argv[1:]
    write(case, pathlib.Path(folder), int(records))
    print(json.dumps({"case": case}))


if __name__ == "__main__":
    main()
