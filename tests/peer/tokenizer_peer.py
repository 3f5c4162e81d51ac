"""Tokenizers beside the libraries they must agree with: one of each kind is trained on the spot, and on tens of megabytes of
mixed text (every script and plane, code, emoji, very long words, bytes that are no UTF-8) every id and every decoded text must
be equal. Called with the path of the program, and --mb for the text that each tokenizer gets; exits with 77 (skipped) where the
Python of LOCKSTEP_PEERS_PYTHON has no tokenizers or sentencepiece.
"""
import argparse
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))


def dumped(path):
    """Ids and decoded bytes of each text, as `lockstep bench tokenize --dump` writes them."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        (count,) = struct.unpack_from("<I", data, at)
        ids = list(struct.unpack_from(f"<{count}i", data, at + 4))
        at += 4 + 4 * count
        (size,) = struct.unpack_from("<I", data, at)
        yield ids, data[at + 4:at + 4 + size]
        at += 4 + size


def compare(program, path, lines, work):
    from tokenizer_texts import Reference

    frames = work / "texts"
    frames.write_bytes(b"".join(struct.pack("<I", len(line)) + line for line in lines))
    # Without <s> and </s>: a .model has no opinion of them.
    bare = [] if path.suffix == ".json" else ["--no-special"]
    subprocess.run([program, "bench", "tokenize", path, frames, "--threads", "2", "--dump", work / "ids", *bare], check=True)
    reference, wrong = Reference(path), 0
    ours = list(dumped(work / "ids"))
    assert len(ours) == len(lines), f"{len(ours)} answers to {len(lines)} texts"
    for line, (ids, text) in zip(lines, ours):
        expected = reference.encode(line, True)
        if ids != expected:
            at = next((i for i, (a, b) in enumerate(zip(ids, expected)) if a != b), min(len(ids), len(expected)))
            print(f"{path.name}: id {at} is {ids[at:at + 4]}, not {expected[at:at + 4]}, of {line[:300]!r}")
            wrong += 1
        elif (decoded := reference.decode(ids)) != text.decode():
            print(f"{path.name}: {ids[:40]} is {text[:200].decode()!r}, not {decoded[:200]!r}")
            wrong += 1
        if wrong > 3:
            break
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--mb", type=float, default=1.5)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--kinds", nargs="*")
    args = parser.parse_args()
    try:
        import sentencepiece  # noqa: F401
        import tokenizers  # noqa: F401
    except ImportError:
        peers = os.environ.get("LOCKSTEP_PEERS_PYTHON")
        if not peers or os.environ.get("LOCKSTEP_IN_PEERS"):
            print("no tokenizers or no sentencepiece in the Python of LOCKSTEP_PEERS_PYTHON")
            return SKIPPED
        command = [peers, __file__, *sys.argv[1:]]
        return subprocess.run(command, env={**os.environ, "LOCKSTEP_IN_PEERS": "1"}).returncode
    from tokenizer_texts import KINDS, texts
    from tokenizer_texts import tokenizers as make

    wrong, total = 0, 0
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for number, kind in enumerate(args.kinds or KINDS):
            (path,) = make(args.seed, work / "made", vocab=3000, full_rules=True, kinds=[kind])
            lines = texts(args.seed * 100 + number, args.mb)
            if kind == "mbart":  # its text is one word, for which the library's time grows with the square of the length
                lines = [line for line in lines if len(line) < 2000]
            found = compare(args.program, path, lines, work)
            size = sum(map(len, lines)) / 1e6
            total += size
            wrong += found
            print(f"{path.name}: {size:.1f} MB, {'equal' if not found else 'DIFFERENT'}", flush=True)
    print(f"{total:.1f} MB in all, {wrong} texts differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
