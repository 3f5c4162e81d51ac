"""How every bench measures: ours and the peers' take turns, medians are compared, figures are kept with the machine.

A bench names its runners (a name and a function that measures once and returns figures) and declares metrics over
these figures. Turns are interleaved, ours first in one round and last in the next, so that a slow minute of the
machine falls on everyone. The result goes to bench/results/NAME.json:

    {"machine": {...}, "cases": [{"case", "metric", "unit", "better", "ours", "peers", "floor", "ratio", "samples", "commit"}]}

A bench may add {"facts": {...}}: what its figures depend on or what it found beside them.

`ratio` is above 1 when ours is better than the best peer, whichever direction is better; `floor` is what the machine
itself would allow, where that is known; `samples` are the values behind the medians; `commit` is that of the program that
was measured, since a bench that runs some of its cases leaves the others as they were. A runner called `before`, another
build of ours, is no peer: it has a column of its own. Only the standard library is used.
"""

import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
from typing import Callable, Optional

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = "lockstep"
BEFORE = "before"
LOCKSTEP = ROOT / "build" / "release" / "lockstep"
PEERS_PYTHON = os.environ.get("LOCKSTEP_PEERS_PYTHON") or str(ROOT / "build" / "peers" / "bin" / "python")
RESULTS = ROOT / "bench" / "results"


class RunFailed(Exception):
    """A runner has no figures: the rest of the bench goes on without it."""


class WrongResult(RunFailed):
    """What a runner gave is not what it should be. The bench fails, whoever it was."""


@dataclasses.dataclass(frozen=True)
class Metric:
    """A value taken from a runner's figures. `value` and `floor` return None where there is nothing to say."""

    name: str
    unit: str
    better: str  # "lower" or "higher"
    value: Callable[[dict], Optional[float]]
    floor: Callable[[dict], Optional[float]] = lambda figures: None  # of our figures


def run_json(command, timeout=900, env=None, given=None):
    """Runs a command that prints one JSON object as its last line, and returns the object. `given` is its input."""
    command = [str(part) for part in command]
    # Messages are kept in the results, where the paths of one machine have no place.
    shown = " ".join([pathlib.Path(command[0]).name, *command[1:]]).replace(f"{ROOT}/", "")
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            input=given,
        )
    except FileNotFoundError:
        raise RunFailed(f"{shown}: there is no such program")
    except subprocess.TimeoutExpired:
        raise RunFailed(f"{shown}: still running after {timeout} s")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise RunFailed(f"{shown}: exit code {done.returncode}: {last}")
    return json.loads(lines[-1])


class Bench:
    """Collects the cases of one bench; `finish` prints the table and writes the file."""

    def __init__(self, name):
        self.name = name
        self.cases = []
        self.failed = []  # (case, runner, reason); a runner that failed once is left out of the rest of its case
        self.wrong = False  # whether anybody gave a wrong result
        self.versions = {}
        self.facts = {}
        self.commit = commit()

    def measure(self, case, runners, metrics, repeats=3, contenders=None):
        """Measures one case: `runners` maps names to functions that return figures; `lockstep` is ours. Of figures after
        one turn, `contenders` names the peers that may still be the best; the others have that one turn only."""
        figures = {name: [] for name in runners}
        names = list(runners)
        for turn in range(repeats):
            if turn == 1 and contenders:
                first = {name: runs[0] for name, runs in figures.items() if runs}
                names = [name for name in names if name in (OURS, BEFORE, *contenders(first))]
            for name in names if turn % 2 == 0 else reversed(names):
                if name not in figures:
                    continue
                print(f"  {case}: {name}, {turn + 1} of {repeats}", file=sys.stderr, flush=True)
                try:
                    figures[name].append(runners[name]())
                except RunFailed as reason:
                    self.note_failure(case, name, reason)
                    del figures[name]
        for metric in metrics:
            self._add(case, metric, figures)

    def note_failure(self, case, runner, reason):
        self.failed.append((case, runner, str(reason)))
        self.wrong |= isinstance(reason, WrongResult)

    def _add(self, case, metric, figures):
        samples = {name: [metric.value(one) for one in runs] for name, runs in figures.items()}
        samples = {name: [v for v in values if v is not None] for name, values in samples.items()}
        medians = {name: statistics.median(values) for name, values in samples.items() if values}
        ours, before = medians.pop(OURS, None), medians.pop(BEFORE, None)
        floors = [f for f in map(metric.floor, figures.get(OURS, [])) if f is not None]
        self.cases.append(
            {
                "case": case,
                "metric": metric.name,
                "unit": metric.unit,
                "better": metric.better,
                "ours": ours,
                **({} if before is None else {BEFORE: before}),
                "peers": medians,
                "floor": statistics.median(floors) if floors else None,
                "ratio": ratio(ours, medians.values(), metric.better),
                "samples": {name: values for name, values in samples.items() if values},
                "commit": self.commit,
            }
        )

    def take_others(self, measured):
        """Puts the cases that are not measured this time in from the kept result, as they were and with their commit."""
        path = RESULTS / f"{self.name}.json"
        if not path.exists():
            return
        kept = json.loads(path.read_text())
        others = [one for one in kept["cases"] if one["case"] not in measured]
        if not others:
            return
        here, there = ((of["cpu"], of["cores"]) for of in (machine(), kept["machine"]))
        if here != there:
            raise SystemExit(
                f"{path.relative_to(ROOT)} is of another machine ({there[0]}, {there[1]} cores), whose figures cannot stand "
                "beside those of this one: measure all cases"
            )
        self.cases += [{"commit": kept["machine"]["commit"], **one} for one in others]
        self.failed += [
            (one["case"], one["runner"], one["reason"]) for one in kept.get("failed", []) if one["case"] not in measured
        ]
        self.versions = {**kept["machine"]["versions"], **self.versions}
        for name, facts in kept.get("facts", {}).items():
            mine = self.facts.setdefault(name, {})
            mine |= {case: fact for case, fact in facts.items() if case not in measured}

    def finish(self, keep=True):
        """Prints the table, keeps it in the file, and returns the exit code: 1 if ours failed anywhere or anybody's result
        was wrong."""
        print(table(self.cases))
        for case, name, reason in self.failed:
            print(f"failed: {case}: {name}: {reason}", file=sys.stderr)
        if keep:
            self._write()
        return 1 if self.wrong or any(name == OURS for _, name, _ in self.failed) else 0

    def _write(self):
        RESULTS.mkdir(parents=True, exist_ok=True)
        path = RESULTS / f"{self.name}.json"
        result = {"machine": machine(self.versions), "cases": self.cases}
        if self.facts:
            result["facts"] = self.facts
        if self.failed:
            result["failed"] = [dict(zip(("case", "runner", "reason"), one)) for one in self.failed]
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"\nwritten to {path.relative_to(ROOT)}")


def ratio(ours, peers, better):
    peers = [value for value in peers if value]
    if not ours or not peers:
        return None
    return min(peers) / ours if better == "lower" else ours / max(peers)


def table(cases):
    names = list(dict.fromkeys(name for case in cases for name in case["peers"]))
    before = [BEFORE] if any(BEFORE in case for case in cases) else []
    rows = [["case", "metric", "unit", "ours", *before, *names, "floor", "ratio"]]
    for case in cases:
        values = [case["ours"], *map(case.get, before), *(case["peers"].get(name) for name in names), case["floor"]]
        shown = "-" if case["ratio"] is None else f"{case['ratio']:.2f}x"
        rows.append([case["case"], case["metric"], case["unit"], *map(short, values), shown])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def short(value):
    """Three significant digits at least, no needless ones."""
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


# ---- the machine a result belongs to ----------------------------------------------------------------------------------


def machine(versions=None):
    cpuinfo = read("/proc/cpuinfo")
    memory = re.search(r"MemTotal:\s+(\d+) kB", read("/proc/meminfo"))
    flags = set((re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE) or [None, ""])[1].split())
    model = re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)', read("/etc/os-release"), re.MULTILINE)
    return {
        "cpu": model[1] if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{int(memory[1]) / 2**20:.1f} GiB" if memory else None,
        "isa": isa(flags),
        "os": name[1] if name else platform.system(),
        "kernel": platform.release(),
        "versions": {**library_versions(), **(versions or {})},
        "commit": commit(),
    }


def commit():
    """Of what is measured: results and documents that were changed since make it no other program."""
    git = ["git", "-C", str(ROOT)]
    name = output([*git, "describe", "--always"])
    changed = output([*git, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results", ":!*.md"])
    return f"{name}-dirty" if name and changed else name


def isa(flags):
    """The class of kernels that Lockstep picks here, and what else matters to the peers."""
    wide = {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags
    extra = [flag for flag in ("avx512_bf16", "avx512_vnni", "amx_bf16") if flag in flags]
    return " ".join(["avx512" if wide else "avx2" if "avx2" in flags else "none", *extra])


def library_versions():
    found = {
        "python": platform.python_version(),
        "compiler": (output(["c++", "--version"]) or "").partition("\n")[0] or None,
        "onednn": debian_version("libdnnl-dev"),
        "torch": output([PEERS_PYTHON, "-c", "import torch; print(torch.__version__)"]),
    }
    return {name: version for name, version in found.items() if version}


def debian_version(package):
    if not shutil.which("dpkg-query"):
        return None
    return output(["dpkg-query", "-W", "-f=${Version}", package])


def output(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""
