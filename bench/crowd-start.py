"""What a crowd costs at the start: eight workers of one thread beside one, from starting the program to the end of the
first step, on a machine that may have fewer processors than that.

Two jobs that read files (text, and tables of card transactions) and one that generates its records, which every worker
does for itself. The clock runs outside, as in bench/startup.py.
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

from harness import LOCKSTEP, OURS, ROOT, Bench, Metric, RunFailed
from startup import LIMIT_S, PREEMPTED, time_to_line

CROWD = 8
ROWS = 240000


def from_template(name):
    def prepare(folder):
        subprocess.run([LOCKSTEP, "init", "--template", name, "job.yaml"], cwd=folder, check=True, capture_output=True)
        return folder / "job.yaml"

    return prepare


def from_files(folder):
    subprocess.run([LOCKSTEP, "data", "synth", "fraud", "--rows", str(ROWS), "--out", "tx"], cwd=folder, check=True,
                   capture_output=True)
    return ROOT / "examples" / "fraud.yaml"


# How to make the job, and what gives it eight microbatches a step.
CASES = {
    "gpt on text": (from_template("gpt"), "train.microbatch=4"),
    f"tabular on {ROWS} records of CSV": (from_files, "train.microbatch=128"),
    "tabular on generated records": (from_template("fraud"), "train.microbatch=128"),
}


def run(prepare, setting, workers):
    with tempfile.TemporaryDirectory(prefix="crowd-start.") as name:
        folder = pathlib.Path(name)
        command = [LOCKSTEP, "train", prepare(folder), "--set", setting, "--set", "strategy.threads=1", "--set",
                   f"strategy.workers={workers}"]
        begins = "step 1/" if workers == 1 else "worker-0 | step 1/"
        process, seconds, _ = time_to_line(command, folder, "stderr", begins)
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        if process.wait(LIMIT_S) != PREEMPTED:
            raise RunFailed(f"lockstep train: exit code {process.returncode} after SIGTERM")
        (summary,) = folder.glob("runs/*/summary.json")
        return {"seconds": seconds, "own": json.loads(summary.read_text())["time_to_first_step_s"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="turns of each")
    args = parser.parse_args()
    metrics = [
        Metric("start to first step", "s", "lower", lambda f: f["seconds"]),
        Metric("time_to_first_step_s", "s", "lower", lambda f: f["own"]),
    ]
    bench = Bench("crowd-start")
    for name, (prepare, setting) in CASES.items():
        runners = {OURS: lambda: run(prepare, setting, CROWD), "1 worker": lambda: run(prepare, setting, 1)}
        bench.measure(f"{name}, {CROWD} workers", runners, metrics, args.repeats)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
