"""One `lockstep train` in a folder of its own, and what it logged: how benches measure whole steps of whole runs.

A job is a dictionary (JSON is YAML). What it trains on, unless it says so itself, is written beside it, from a seed, so that no
machine needs to bring data along. The first steps of a run are left out: they bring in memory, threads and code.
"""

import json
import pathlib
import random
import statistics
import subprocess
import tempfile

from harness import LOCKSTEP, RunFailed

LIMIT_S = 600
TEXT_BYTES = 1 << 20
WARM_UP = 3


def write_text(path):
    words = random.Random(7)
    letters = "etaoinshrdlucmfwypvbgk"
    text = []
    size = 0
    while size < TEXT_BYTES:
        text.append("".join(words.choices(letters, k=words.randint(1, 9))))
        size += len(text[-1]) + 1
    path.write_text(" ".join(text))


def train_job(job, settings=(), before=(), flags=()):
    """Runs the job and returns its steps after the warm-up and its summary; `before` stands in front of the command."""
    with tempfile.TemporaryDirectory(prefix="train_job.") as folder:
        folder = pathlib.Path(folder)
        write_text(folder / "text")
        text = {"train": {"format": "text", "files": str(folder / "text")}}
        job = {"data": text, **job, "output": str(folder / "run")}
        (folder / "job.yaml").write_text(json.dumps(job))
        command = [*before, LOCKSTEP, "train", folder / "job.yaml", *flags]
        for setting in settings:
            command += ["--set", setting]
        command = [str(part) for part in command]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"lockstep train: still running after {LIMIT_S} s")
        if done.returncode != 0:
            # The last line of a failed set of workers says little: the first that names an error does.
            lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no output"]
            said = next((line for line in lines if line.startswith("lockstep:")), lines[-1])
            raise RunFailed(f"lockstep train: exit code {done.returncode}: {said}".replace(f"{folder}/", ""))
        lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
        steps = [one for one in map(json.loads, lines) if one["kind"] == "step"]
        return steps[WARM_UP:], json.loads((folder / "run" / "summary.json").read_text())


def step_figures(steps):
    """The median step, its samples per second, and the share of all time that waiting for others took."""
    seconds = [one["seconds"] for one in steps]
    median = statistics.median(seconds)
    return {
        "step_ms": 1e3 * median,
        "samples_s": steps[0]["samples"] / median,
        "exposed_comm": sum(one["time"]["exposed_comm"] for one in steps) / sum(seconds),
    }
