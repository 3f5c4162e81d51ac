"""Real launchers start the program: mpirun, torchrun, Slurm, and processes placed by TF_CONFIG or CLUSTER_SPEC. Four workers
each time, and each time the bits of one.

  python3 tests/peer/launchers.py PROGRAM CASE

PROGRAM is lockstep. Ends with 0, with 1 and the difference, or with 77 and the reason why the case cannot be run here.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import slurm

WORKERS = 4
SKIPPED = 77
LONGEST = 120  # seconds a command may take
JOB = """\
name: launched
model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 32, seq: 8, dropout: 0.1}
data: {train: {format: synthetic, samples: 100}, eval: {samples: 8}, seed: 3}
train: {steps: 20, global_batch: 8, microbatch: 2, lr: {base: 1e-2}, eval: {every: 7}}
strategy: {leaves: 4, threads: 1, deadline: 30}
"""


class Skipped(Exception):
    pass


def need(name, package):
    path = slurm.find(name)
    if not path:
        raise Skipped(f"{name} not installed (Debian: {package})")
    return path


class Case:
    """A job in a folder of its own, and the bits that one worker gives."""

    def __init__(self, program, folder):
        self.program = str(pathlib.Path(program).resolve())
        self.folder = pathlib.Path(folder)
        self.job = self.folder / "job.yaml"
        self.job.write_text(JOB)
        self.expected = self.summary("alone", [self.command("alone")])["weights_sha256"]

    def command(self, run, *settings):
        words = [self.program, "train", str(self.job), "--set", f"output={self.folder / run}"]
        for setting in settings:
            words += ["--set", setting]
        return words

    def summary(self, run, commands, environments=None):
        """Of a run that the commands, side by side, bring to its end."""
        started = [subprocess.Popen(command, env=(environments or [None] * len(commands))[i], cwd=self.folder,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True)
                   for i, command in enumerate(commands)]
        try:
            outputs = [one.communicate(timeout=LONGEST)[0] for one in started]
        finally:
            for one in started:
                if one.poll() is None:
                    one.kill()
                    one.wait()
        for one, output in zip(started, outputs):
            if one.returncode != 0:
                raise AssertionError(f"{' '.join(one.args)} ended with {one.returncode}:\n{output}")
        return json.loads((self.folder / run / "summary.json").read_text())

    def expect_same_bits(self, run, commands, environments=None):
        found = self.summary(run, commands, environments)
        if found["workers"] != WORKERS:
            raise AssertionError(f"{run}: {found['workers']} workers, not {WORKERS}")
        if found["weights_sha256"] != self.expected:
            raise AssertionError(f"{run}: {found['weights_sha256']}, but one worker gives {self.expected}")
        print(f"{run}: {WORKERS} workers, {found['weights_sha256']}, as one worker")


def mpirun(case):
    launcher = [need("mpirun", "openmpi-bin"), "--oversubscribe", "-np", str(WORKERS)]
    if os.geteuid() == 0:
        launcher.insert(1, "--allow-run-as-root")
    case.expect_same_bits("mpirun", [launcher + case.command("mpirun")])


def torchrun(case):
    python = os.environ.get("LOCKSTEP_PEERS_PYTHON")
    if not python:
        raise Skipped("LOCKSTEP_PEERS_PYTHON is not set to a Python with torch")
    launcher = [python, "-m", "torch.distributed.run", "--nproc-per-node", str(WORKERS), "--no-python"]
    case.expect_same_bits("torchrun", [launcher + case.command("torchrun")])
    # What a worker says of its error reaches torchrun's report, through the file that it names.
    bad = subprocess.run(launcher + case.command("bad", "strategy.workers=3"), cwd=case.folder, capture_output=True,
                         text=True, timeout=LONGEST)
    message = f"strategy.workers is 3, but torchrun started {WORKERS}"
    report = bad.stderr[bad.stderr.rfind("Root Cause"):]
    if bad.returncode == 0 or message not in report:
        raise AssertionError(f"no '{message}' in torchrun's report:\n{bad.stderr}")


def slurm_tasks(case):
    if reason := slurm.missing():
        raise Skipped(reason)
    with slurm.Cluster(case.folder / "slurm") as cluster:
        environment = [cluster.environment]
        srun, sbatch = slurm.find("srun"), slurm.find("sbatch")
        case.expect_same_bits("srun", [[srun, "-n", str(WORKERS)] + case.command("srun")], environment)
        # One task that starts its own workers, and a batch script, which is no task at all.
        share = f"strategy.workers={WORKERS}"
        case.expect_same_bits("one-task", [[srun, "-n", "1"] + case.command("one-task", share)], environment)
        script = case.folder / "batch.sh"
        script.write_text("#!/bin/sh\nexec " + " ".join(case.command("batch", share)) + "\n")
        case.expect_same_bits(
            "batch", [[sbatch, "--wait", "-n", str(WORKERS), f"--output={case.folder}/batch.log", str(script)]],
            environment)


def by_hand(case, run, variable, chief, worker):
    """Four processes of one host, as a cluster's specification places them."""
    addresses = [f"127.0.0.1:{port}" for port in slurm.free_ports(WORKERS)]
    cluster = {chief: addresses[:1], worker: addresses[1:]}
    tasks = [{"type": chief, "index": 0}] + [{"type": worker, "index": i} for i in range(WORKERS - 1)]
    environments = [{**os.environ, variable: json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}
                    for task in tasks]
    case.expect_same_bits(run, [case.command(run)] * WORKERS, environments)


def tf_config(case):
    by_hand(case, "tf_config", "TF_CONFIG", "chief", "worker")


def cluster_spec(case):
    by_hand(case, "cluster_spec", "CLUSTER_SPEC", "workerpool0", "workerpool1")


CASES = {"mpirun": mpirun, "torchrun": torchrun, "slurm": slurm_tasks, "tf_config": tf_config,
         "cluster_spec": cluster_spec}


def main(program, name):
    folder = tempfile.mkdtemp(prefix="lockstep-peer-")
    os.chmod(folder, 0o755)  # munged wants to know that others could reach its socket
    try:
        CASES[name](Case(program, folder))
    except Skipped as reason:
        print(f"SKIPPED: {reason}")
        return SKIPPED
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in CASES:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
