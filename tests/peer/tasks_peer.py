"""Tables of classes and of numbers beside PyTorch and scikit-learn: on data sets of scikit-learn and one made like its
California housing, `lockstep train` reaches the accuracy or R2 of the same network in PyTorch, within 0.01 on the mean of
several splits. Scikit-learn's own network of that size is printed beside, and for classes must not be further ahead than
that; it begins with smaller weights, which a table of 300 records and a noisy value likes better. Called with the path of the
program; exits with 77 (skipped) where the Python of LOCKSTEP_PEERS_PYTHON lacks one of them.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
TOLERANCE = 0.01
BOTTOM, DIM, TOP = 64, 32, 64
LR = 3e-3
DECAY = 0.01
BATCH = 32

JOB = """
name: peer
model: {{family: tabular, dim: {dim}, bottom: [{bottom}], top: [{top}]}}
data:
  train: {{format: csv, files: train.csv, label: {label}}}
  eval: {{files: test.csv}}
  shuffle: global
  seed: {seed}
train:
  epochs: {epochs}
  global_batch: {batch}
  microbatch: {batch}
  optimizer: {{name: adamw, weight_decay: {decay}}}
  lr: {{base: {lr}, decay: linear}}
  seed: {seed}
strategy: {{threads: 1}}
output: run
"""


def california_like():
    """Eight columns with the ranges and skews of the California housing table, and a price that depends on them."""
    import numpy as np

    draw = np.random.default_rng(7)
    rows = 4000
    income = draw.gamma(3.5, 1.1, rows)
    age = draw.uniform(1, 52, rows)
    rooms = draw.normal(5.4, 1.2, rows).clip(1)
    bedrooms = rooms / draw.normal(5, 0.3, rows)
    people = draw.lognormal(7, 0.7, rows)
    together = draw.normal(3, 0.7, rows).clip(1)
    north = draw.uniform(32.5, 42, rows)
    west = -124 + (42 - north) * draw.uniform(0.3, 1.1, rows)
    coast = np.exp(-((west + 124 - (42 - north) * 0.45) ** 2))
    price = 0.42 * income + 0.9 * coast - 0.25 * together + 0.004 * age + 0.1 * rooms - 0.2 * bedrooms
    price += 0.35 * np.sin(north) * coast + draw.normal(0, 0.35, rows)
    return np.stack([income, age, rooms, bedrooms, people, together, north, west], 1), price


def data_sets():
    """Name, columns, labels, epochs, splits; labels of classes are texts where the set names them."""
    import sklearn.datasets

    digits = sklearn.datasets.load_digits()
    yield "digits", digits.data, digits.target, 20, 4
    wine = sklearn.datasets.load_wine()
    yield "wine", wine.data, wine.target_names[wine.target], 40, 8
    diabetes = sklearn.datasets.load_diabetes(scaled=False)
    yield "diabetes", diabetes.data, diabetes.target, 10, 12
    yield "california-like", *california_like(), 12, 3


def encoded(train, test):
    """Columns as Lockstep encodes them: log1p of skewed ones that are never negative, then standardised and clipped."""
    import numpy as np

    mean, deviation = train.mean(0), train.std(0)
    third = ((train - mean) ** 3).mean(0)
    skewed = (train.min(0) >= 0) & (np.divide(third, deviation**3, out=np.zeros_like(third), where=deviation > 0) > 2)
    both = [np.where(skewed, np.sign(x) * np.log1p(np.abs(x)), x) for x in (train, test)]
    mean, deviation = both[0].mean(0), both[0].std(0)
    deviation[deviation == 0] = 1
    return [((x - mean) / deviation).clip(-10, 10).astype(np.float32) for x in both]


def score(predicted, labels, classes):
    from sklearn.metrics import accuracy_score, r2_score

    return accuracy_score(labels, predicted) if classes else r2_score(labels, predicted)


def torch_score(train, test, epochs, seed, classes):
    """The same network, beginning like ours, with the same updates."""
    import math

    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    outputs = classes or 1
    widths = [train[0].shape[1], BOTTOM, DIM, TOP, outputs]
    layers = []
    for i, o in zip(widths, widths[1:]):
        layer = torch.nn.Linear(i, o)
        torch.nn.init.normal_(layer.weight, std=math.sqrt(2 / i))
        torch.nn.init.zeros_(layer.bias)
        layers += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    x, y = torch.from_numpy(train[0]), torch.from_numpy(train[1])
    matrices = [p for p in model.parameters() if p.ndim > 1]
    biases = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": biases, "weight_decay": 0}], LR)
    steps = math.ceil(epochs * len(x) / BATCH)
    loss_of = torch.nn.functional.cross_entropy if classes else torch.nn.functional.mse_loss
    order = torch.cat([torch.randperm(len(x)) for _ in range(epochs + 1)])
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = LR * (1 - step / steps)
        rows = order[step * BATCH:(step + 1) * BATCH]
        optimizer.zero_grad()
        answer = model(x[rows])
        loss_of(answer if classes else answer[:, 0], y[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        answer = model(torch.from_numpy(test[0])).numpy()
    return score(answer.argmax(1) if classes else answer[:, 0], test[1], classes)


def sklearn_score(train, test, epochs, seed, classes):
    import warnings

    from sklearn.neural_network import MLPClassifier, MLPRegressor

    network = (MLPClassifier if classes else MLPRegressor)(
        hidden_layer_sizes=(BOTTOM, DIM, TOP), batch_size=BATCH, learning_rate_init=LR, max_iter=epochs, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network.fit(*train)
    return score(network.predict(test[0]), test[1], classes)


def lockstep_score(program, folder, table, labels, parts, epochs, seed, classes):
    for name, rows in zip(("train", "test"), parts):
        lines = [",".join([f"c{i}" for i in range(table.shape[1])] + ["y"])]
        lines += [",".join([*map(repr, map(float, table[r])), str(labels[r])]) for r in rows]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    job = JOB.format(dim=DIM, bottom=BOTTOM, top=TOP, label="y", seed=seed, epochs=epochs, batch=BATCH, decay=DECAY, lr=LR)
    (folder / "job.yaml").write_text(job)
    subprocess.run([program, "train", "job.yaml", "--fresh"], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    evaluation = json.loads((folder / "run" / "summary.json").read_text())["final_eval"]
    meaning = json.loads((folder / "run" / "labels.json").read_text())
    assert meaning["task"] == ("classification" if classes else "regression"), meaning
    return evaluation["accuracy" if classes else "r2"]


def compare(program, folder, name, table, labels, epochs, splits):
    import numpy as np

    different = np.unique(labels)
    classes = len(different) if len(different) <= 20 else 0
    ours, torch, sklearn = [], [], []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(table))
        parts = order[len(table) // 3:], order[:len(table) // 3]
        columns = encoded(table[parts[0]], table[parts[1]])
        if classes:
            targets = [np.searchsorted(different, labels[rows]) for rows in parts]
        else:
            mean, deviation = labels[parts[0]].mean(), labels[parts[0]].std()
            targets = [((labels[rows] - mean) / deviation).astype(np.float32) for rows in parts]
        train, test = (columns[0], targets[0]), (columns[1], targets[1])
        torch.append(torch_score(train, test, epochs, seed, classes))
        sklearn.append(sklearn_score(train, test, epochs, seed, classes))
        ours.append(lockstep_score(program, folder, table, labels, parts, epochs, seed, classes))
    means = [float(np.mean(scores)) for scores in (ours, torch, sklearn)]
    print("{}: {} lockstep {:.4f}, PyTorch {:.4f}, scikit-learn {:.4f}".format(
        name, "accuracy" if classes else "R2", *means))
    assert abs(means[0] - means[1]) <= TOLERANCE, f"{name}: further than {TOLERANCE} from PyTorch"
    assert not classes or means[0] >= means[2] - TOLERANCE, f"{name}: less than scikit-learn"


def main():
    python = os.environ.get("LOCKSTEP_PEERS_PYTHON")
    if python and "again" not in sys.argv:
        os.execv(python, [python, __file__, sys.argv[1], "again"])
    try:
        import sklearn  # noqa: F401
        import torch  # noqa: F401
    except ImportError as missing:
        print(f"SKIPPED: the Python of the peers cannot import {missing.name}")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        for case in data_sets():
            compare(os.path.abspath(sys.argv[1]), pathlib.Path(folder), *case)


if __name__ == "__main__":
    main()
