"""What a neighbour costs: training beside a program that keeps one core busy, and under a quota of processor time of one
core on a machine that has more.

Beside a busy loop a run of T threads on C cores is one of T + 1 threads that want to run: its fair share is T / (T + 1) of the
machine. Under a quota of one core it should be as fast as with one thread. Both are measured in one turn with the run alone, so that
a slow minute falls on all of them, and given as shares of what would be fair.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import LOCKSTEP, OURS, Bench, Metric, RunFailed

LIMIT_S = 300

# Small steps, whose kernels are short, and larger ones.
CASES = {
    "gpt 4x64": """
name: gpt
model: {family: gpt, layers: 4, dim: 64, heads: 4, vocab: 512, seq: 64}
data: {train: {format: synthetic, samples: 4096}}
train: {steps: 400, global_batch: 16, microbatch: 8, lr: {base: 1e-3}}
""",
    "gpt 4x256": """
name: gpt
model: {family: gpt, layers: 4, dim: 256, heads: 8, vocab: 4096, seq: 128}
data: {train: {format: synthetic, samples: 4096}}
train: {steps: 25, global_batch: 16, microbatch: 8, lr: {base: 1e-3}}
""",
    "tabular": """
name: tabular
model: {family: tabular, dim: 16, rows: 10000, bottom: [128, 64], top: [128, 64]}
data: {train: {format: synthetic, samples: 100000}, hold_out: 0.1}
train: {steps: 400, global_batch: 512, microbatch: 128, lr: {base: 1e-3}}
""",
}


@contextlib.contextmanager
def busy_loop():
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def quota_of_one_core():
    """Gives the file through which a process enters a control group with that quota."""
    with open("/proc/self/cgroup") as file:
        groups = dict(line.strip().split(":", 2)[1:] for line in file)
    version1 = next((path for names, path in groups.items() if "cpu" in names.split(",")), None)
    parent = pathlib.Path("/sys/fs/cgroup" + (groups[""] if version1 is None else "/cpu" + version1))
    group = parent / f"lockstep-bench-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as reason:
        raise RunFailed(f"cannot make a control group: {reason}")
    try:
        if version1 is None:
            (group / "cpu.max").write_text("100000 100000")
        else:
            (group / "cpu.cfs_quota_us").write_text("100000")
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def rate_of(job, settings=(), procs=None):
    """Samples a second."""
    with tempfile.TemporaryDirectory(prefix="neighbour.") as name:
        folder = pathlib.Path(name)
        (folder / "job.yaml").write_text(job)
        command = [LOCKSTEP, "train", folder / "job.yaml", "--set", f"output={folder}/run"]
        for setting in settings:
            command += ["--set", setting]
        enter = (lambda: pathlib.Path(procs).write_text(str(os.getpid()))) if procs else None
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, preexec_fn=enter)
        if done.returncode != 0:
            raise RunFailed(f"lockstep train: exit code {done.returncode}: {done.stderr.strip()[-200:]}")
        return json.loads((folder / "run" / "summary.json").read_text())["samples_per_second"]


def beside_a_loop(job):
    threads = len(os.sched_getaffinity(0))
    alone = rate_of(job)
    with busy_loop():
        crowded = rate_of(job)
    return {"alone": alone, "rate": crowded, "share": crowded / (alone * threads / (threads + 1))}


def under_a_quota(job):
    alone = rate_of(job, ["strategy.threads=1"])
    with quota_of_one_core() as procs:
        limited = rate_of(job, procs=procs)
    return {"alone": alone, "rate": limited, "share": limited / alone}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="turns of each")
    args = parser.parse_args()
    metrics = [
        Metric("share of what is fair", "", "higher", lambda f: f["share"]),
        Metric("samples/s", "1/s", "higher", lambda f: f["rate"]),
        Metric("samples/s alone", "1/s", "higher", lambda f: f["alone"]),
    ]
    bench = Bench("neighbour")
    for name, job in CASES.items():
        bench.measure(f"{name}, beside a busy loop", {OURS: lambda: beside_a_loop(job)}, metrics, args.repeats)
        bench.measure(f"{name}, quota of one core", {OURS: lambda: under_a_quota(job)}, metrics, args.repeats)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
