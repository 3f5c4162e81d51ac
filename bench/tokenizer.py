"""Text to token ids: megabytes a second on one thread and on two, beside the libraries that the ids are compared with.

Three texts (English-like prose, code, many scripts) of documents of some kilobytes, and a tokenizer of each kind that is
common: byte-level BPE by the patterns of GPT-2 and Llama 3, BPE over whole texts (Llama 2), WordPiece, and the unigram and BPE
models of SentencePiece. They are trained here, with 32,000 tokens, on text of the same kind but other documents. Before anything
is measured, every id must be that of the library. `tokenizers` and `sentencepiece` are told how many threads they may use; tiktoken
runs the same merges where it is installed. A peer is given its texts as Python strings in one call, and its answer is kept as
it comes: turning ids into lists is not counted.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

from harness import LOCKSTEP, OURS, PEERS_PYTHON, ROOT, Bench, Metric, WrongResult, run_json

KINDS = ("gpt2", "llama3", "llama2", "bert", "t5", "sp_unigram", "sp_bpe")
TEXTS = ("prose", "code", "scripts")
PEER = ROOT / "bench" / "peers" / "tokenizer_peers.py"


def prepare(folder, megabytes):
    command = [PEERS_PYTHON, PEER, "prepare", folder, *map(str, (megabytes, ",".join(KINDS)))]
    subprocess.run(command, check=True)


def peer(library, path, texts, threads, seconds):
    env = {"RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false"}
    command = [PEERS_PYTHON, PEER, "measure", library, path, texts, threads, seconds]
    return run_json(command, env=env)


def same_ids(path, texts, work, special):
    dump = work / "dump"
    subprocess.run([LOCKSTEP, "bench", "tokenize", path, texts, "--dump", dump, *special], check=True)
    done = subprocess.run([PEERS_PYTHON, PEER, "compare", path, texts, dump])
    if done.returncode:
        raise WrongResult(f"{path.name}: ids of {texts.name} differ")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--megabytes", type=float, default=8, help="of each text")
    parser.add_argument("--seconds", type=float, default=2, help="of one turn")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    args = parser.parse_args()
    bench = Bench("tokenizer")
    metrics = [Metric("text", "MB/s", "higher", lambda f: f["mb_per_s"])]
    with tempfile.TemporaryDirectory(prefix="tokenize.") as folder:
        work = pathlib.Path(folder)
        prepare(work, args.megabytes)
        for kind in args.kinds:
            (path,) = [p for p in work.glob(f"{kind}.*")]
            special = ["--no-special"]
            for name in TEXTS:
                texts = work / f"{name}.texts"
                try:
                    same_ids(path, texts, work, special)
                except WrongResult as wrong:
                    bench.note_failure(f"{kind}, {name}", OURS, wrong)
                    continue
                for threads in args.threads:
                    ours = [LOCKSTEP, "bench", "tokenize", path, texts, "--threads", threads, "--seconds", args.seconds, *special]
                    libraries = ["sentencepiece"] if path.suffix == ".model" else ["tokenizers"]
                    if kind in ("gpt2", "llama3"):
                        libraries.append("tiktoken")
                    runners = {OURS: lambda ours=ours: run_json(ours)}
                    for library in libraries:
                        runners[library] = lambda library=library: peer(library, path, texts, threads, args.seconds)
                    case = f"{kind}, {name}, {threads} thread{'s' if threads > 1 else ''}"
                    bench.measure(case, runners, metrics, args.repeats)
    one = {c["case"].rsplit(",", 1)[0]: c["ours"] for c in bench.cases if c["case"].endswith("1 thread")}
    two = {c["case"].rsplit(",", 1)[0]: c["ours"] for c in bench.cases if c["case"].endswith("2 threads")}
    ratios = [c["ratio"] for c in bench.cases if c["case"].endswith("1 thread") and c["ratio"]]
    if ratios:
        bench.facts["worst_ratio_one_thread"] = min(ratios)
    gains = {case: two[case] / one[case] for case in one if two.get(case) and one[case]}
    if gains:
        bench.facts["two_threads_worst"] = min(gains.values())
    bench.finish()


if __name__ == "__main__":
    sys.exit(main())
