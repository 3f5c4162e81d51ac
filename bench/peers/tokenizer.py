"""The peers of bench tokenizer, and what all of them work on.

<<<<<<<< HEAD:bench/peers/tokenizer.py
    tokenizer.py prepare FOLDER MEGABYTES KINDS            writes texts and tokenizers
    tokenizer.py measure LIBRARY FILE TEXTS THREADS SECONDS  prints {"mb_per_s": ...}
    tokenizer.py compare FILE TEXTS DUMP                   fails where the ids of the dump are not the library's
========
    tokenizer_peers.py prepare FOLDER MEGABYTES KINDS            writes texts and tokenizers
    tokenizer_peers.py measure LIBRARY FILE TEXTS THREADS SECONDS  prints {"mb_per_s": ...}
    tokenizer_peers.py compare FILE TEXTS DUMP                   fails where the ids of the dump are not the library's
>>>>>>>> gen/main:bench/peers/tokenizer_peers.py
"""

import json
import pathlib
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "peer"))

SCRIPTS = [(0x430, 0x44F), (0x3B1, 0x3C9), (0x4E00, 0x5200), (0x3041, 0x3096), (0xAC00, 0xAE00), (0x905, 0x939), (0x627, 0x64A),
           (0xE01, 0xE2E), (0x61, 0x7A)]


def documents(kind, seed, megabytes):
    from tokenizer_texts import CODE, Texts

    maker = Texts(seed)
    draw = maker.random
    # Words of each script, which come again as words do.
    language = __import__("random").Random(2)
    words = [["".join(chr(language.randint(low, high)) for _ in range(language.randint(1, 6))) for _ in range(3000)]
             for low, high in SCRIPTS]

    def piece():
        if kind == "prose":
            return maker.prose(40) + ".\n"
        if kind == "code":
            names = draw.choices(maker.words, maker.weights, k=3)
            return draw.choice(CODE).replace("x", names[0]) + f"    {names[1]}_{names[2]} = {names[0]}({draw.randrange(1000)})\n"
        script = draw.randrange(len(SCRIPTS))
        spaced = "" if SCRIPTS[script][0] in (0x4E00, 0x3041, 0xE01) else " "
        return spaced.join(draw.choices(words[script], maker.weights[:3000], k=30)) + draw.choice(("。", ". ", "!\n"))

    out, size = [], 0
    while size < megabytes * 1e6:
        parts, length = [], 0
        while length < 4000:
            parts.append(piece())
            length += len(parts[-1].encode())
        out.append("".join(parts))
        size += length
    return out


def prepare(folder, megabytes, kinds):
    from tokenizer_texts import Makers

    folder = pathlib.Path(folder)
    makers = Makers(1, folder, 32000, full_rules=True)
    makers.lines = [line for kind in ("prose", "code", "scripts") for text in documents(kind, 1, 2) for line in text.splitlines()]
    for kind in kinds.split(","):
        getattr(makers, kind)()
        print(f"  trained {kind}", file=sys.stderr, flush=True)
    for kind in ("prose", "code", "scripts"):
        texts = [text.encode() for text in documents(kind, 7, float(megabytes))]
        (folder / f"{kind}.texts").write_bytes(b"".join(struct.pack("<I", len(t)) + t for t in texts))


def read(path):
    data, at, texts = pathlib.Path(path).read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        texts.append(data[at + 4:at + 4 + size].decode())
        at += 4 + size
    return texts


def encoder(library, path, threads):
    if library == "tokenizers":
        import tokenizers

        model = tokenizers.Tokenizer.from_file(path)
        return lambda texts: model.encode_batch_fast(texts, add_special_tokens=False)
    if library == "sentencepiece":
        import sentencepiece

        model = sentencepiece.SentencePieceProcessor(model_file=path)
        return lambda texts: model.encode(texts, out_type=int, num_threads=threads)
    import tiktoken

    value = json.loads(pathlib.Path(path).read_text())
    back = {}
    rest = 256
    for byte in range(256):
        plain = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        back[chr(byte if plain else rest)] = byte
        rest += 0 if plain else 1
    ranks = {bytes(back[c] for c in token): i for token, i in value["model"]["vocab"].items() if all(c in back for c in token)}
    steps = value["pre_tokenizer"].get("pretokenizers")
    pattern = steps[0]["pattern"]["Regex"] if steps else None
    pattern = pattern or r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    model = tiktoken.Encoding("trained", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda texts: model.encode_ordinary_batch(texts, num_threads=threads)


def measure(library, path, texts, threads, seconds):
    texts = read(texts)
    size = sum(len(text.encode()) for text in texts) / 1e6
    encode = encoder(library, path, int(threads))
    encode(texts)
    best, start = 1e30, time.perf_counter()
    while True:
        turn = time.perf_counter()
        encode(texts)
        now = time.perf_counter()
        best = min(best, now - turn)
        if now - start > float(seconds):
            break
    print(json.dumps({"mb_per_s": size / best}))


def compare(path, texts, dump):
    from tokenizer_peer import dumped
    from tokenizer_texts import Reference

    reference = Reference(pathlib.Path(path))
    for text, (ids, _) in zip(read(texts)[:300], dumped(pathlib.Path(dump))):
        if reference.encode(text.encode(), False) != ids:
            raise SystemExit(f"{path}: other ids for {text[:80]!r}")


if __name__ == "__main__":
    {"prepare": prepare, "measure": measure, "compare": compare}[sys.argv[1]](*sys.argv[2:])
