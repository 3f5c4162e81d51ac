"""Should the input pipeline read with io_uring? Blocks of a file in a mixed order, from the disk and from the system's cache:
blocking reads that are asked for ahead (posix_fadvise), beside io_uring with as many reads under way.

"lockstep" stands for the pipeline's way of reading, without the pipeline: as many threads as processors. The file is
written once into build/bench-reads; between turns from the disk it is put out of the cache, which needs no privilege.
"""

import argparse
import os
import subprocess

from harness import OURS, ROOT, Bench, Metric, RunFailed, run_json

FOLDER = ROOT / "build" / "bench-reads"
BYTES = 1 << 29
BLOCK = 1 << 16
AHEAD = 64


def prepare():
    FOLDER.mkdir(parents=True, exist_ok=True)
    program, file = FOLDER / "reads", FOLDER / "file"
    command = ["cc", "-O2", "-o", program, ROOT / "bench" / "probes" / "reads.c", "-lpthread"]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as reason:
        raise RunFailed(f"cc: {reason}")
    if not file.exists() or file.stat().st_size != BYTES:
        with open(file, "wb") as out:
            for _ in range(BYTES >> 20):
                out.write(os.urandom(1 << 20))
            os.fsync(out.fileno())
    return [program, file, BLOCK]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    command = prepare()
    cores = len(os.sched_getaffinity(0))
    ways = {
        OURS: ["pread", cores, AHEAD],
        "pread": ["pread", cores, 0],
        "pread, 32 threads": ["pread", 32, 0],
        "io_uring": ["uring", AHEAD // cores, cores],
        "io_uring, 1 thread": ["uring", AHEAD, 1],
    }
    metrics = [
        Metric("bytes a second", "MB/s", "higher", lambda f: f["mb_s"]),
        Metric("processor for a GB", "s", "lower", lambda f: f["cpu_s_gb"]),
    ]
    bench = Bench("reads")
    for state, title in (("cold", "from the disk"), ("warm", "from the system's cache")):
        runners = {name: lambda state=state, way=way: run_json([*command, state, *way]) for name, way in ways.items()}
        bench.measure(f"blocks of 64 KiB {title}", runners, metrics, args.repeats)
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
