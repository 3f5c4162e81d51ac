"""How long until a run learns: from starting the program to the end of the first training step.

`lockstep train` on the job templates as they are, beside a PyTorch script that does the same for the gpt one: imports
included, eager, because compiling takes longer than a step. The clock runs outside, from the start of the process to
the line that says that a step is done. Our own figure, `time_to_first_step_s` of summary.json, stands beside it.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from harness import LOCKSTEP, OURS, PEERS_PYTHON, ROOT, Bench, Metric, RunFailed

TEMPLATES = ("gpt", "fraud", "encoder", "resnet")
TEXT = "/usr/share/common-licenses"  # what the gpt template trains on
PREEMPTED = 75
LIMIT_S = 120


def time_to_line(command, folder, stream, begins, env=None):
    """Starts the command and returns it, the seconds until a line of `stream` begins so, and that line."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=folder,
        text=True,
        env={**os.environ, **(env or {})},
        **{stream: subprocess.PIPE, ({"stdout", "stderr"} - {stream}).pop(): subprocess.DEVNULL},
    )
    last = "no output"
    for line in getattr(process, stream):
        if line.startswith(begins):
            return process, time.perf_counter() - start, line
        last = line.strip() or last
    raise RunFailed(f"{pathlib.Path(command[0]).name}: exit code {process.wait()}: {last}")


def ours(template, threads):
    with tempfile.TemporaryDirectory(prefix="startup.") as folder:
        subprocess.run([LOCKSTEP, "init", "--template", template, "job.yaml"], cwd=folder, check=True, capture_output=True)
        command = [LOCKSTEP, "train", "job.yaml", "--set", f"strategy.threads={threads}"]
        process, seconds, _ = time_to_line(command, folder, "stderr", "step 1/")
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        if process.wait(LIMIT_S) != PREEMPTED:
            raise RunFailed(f"lockstep train: exit code {process.returncode} after SIGTERM")
        (summary,) = pathlib.Path(folder).glob("runs/*/summary.json")
        return {"seconds": seconds, "own": json.loads(summary.read_text())["time_to_first_step_s"]}


def torch(threads):
    command = [PEERS_PYTHON, ROOT / "bench" / "peers" / "torch_startup.py", TEXT, threads]
    process, seconds, line = time_to_line(command, ROOT, "stdout", "{", env={"OMP_NUM_THREADS": str(threads)})
    process.stdout.read()
    process.wait(LIMIT_S)
    return {"seconds": seconds, "import": json.loads(line)["import_s"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=TEMPLATES, help="only this template; the result is printed, not kept")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7, help="turns of each")
    args = parser.parse_args()

    metrics = [
        Metric("start to first step", "s", "lower", lambda f: f["seconds"]),
        Metric("of it imports", "s", "lower", lambda f: f.get("import")),
        Metric("time_to_first_step_s", "s", "lower", lambda f: f.get("own")),
    ]
    bench = Bench("startup")
    for template in [args.case] if args.case else TEMPLATES:
        runners = {OURS: lambda: ours(template, args.threads)}
        if template == "gpt":
            runners["torch eager"] = lambda: torch(args.threads)
        kept = metrics if template == "gpt" else [m for m in metrics if "imports" not in m.name]
        bench.measure(f"{template} template", runners, kept, args.repeats)
    return bench.finish(keep=not args.case)


if __name__ == "__main__":
    sys.exit(main())
