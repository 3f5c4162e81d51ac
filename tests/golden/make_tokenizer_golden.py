"""Writes tests/golden/tokenizer/: small tokenizers of every kind, texts, and the ids that the reference libraries give.

    make_tokenizer_golden.py     with a Python that has tokenizers 0.23.3 and sentencepiece 0.2.3

texts.jsonl has a text a line (hexadecimal where it is no UTF-8); NAME.jsonl has, for each, the ids with special tokens, those
without where they differ, and for some the decoded text.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from tokenizer_texts import Reference, Texts, tokenizers  # noqa: E402

FOLDER = pathlib.Path(__file__).parent / "tokenizer"
LINES = 170


def texts():
    maker = Texts(7)
    fixed = [b"", b" ", b"  ", b"\n", b"Hello world!", b" Hello  world ", b"\xff", b"a\xe2\x96", "▁".encode(), "a▁b ▁c".encode(),
             "Ünïcödé İstanbul ΣΑΣ".encode(), "  \n\n  x\t\r\n".encode(), b"\0a\0", "字" .encode() * 60, b"<s>a</s> <mask> b"]
    return fixed + [maker.one() for _ in range(LINES)] + [maker.long_word().encode()[:600] for _ in range(4)]


def main():
    FOLDER.mkdir(exist_ok=True)
    paths = tokenizers(3, FOLDER)
    lines = texts()

    def shown(data):
        try:
            return json.dumps(data.decode(), ensure_ascii=True)
        except UnicodeDecodeError:
            return json.dumps({"hex": data.hex()})

    (FOLDER / "texts.jsonl").write_text("".join(shown(data) + "\n" for data in lines))
    for path in paths:
        reference = Reference(path)
        with open(FOLDER / f"{path.name}.ids.jsonl", "w") as out:
            for i, data in enumerate(lines):
                ids = reference.encode(data, True)
                line = {"ids": ids}
                bare = reference.encode(data, False)
                if bare != ids and i < 20:
                    line["bare"] = bare
                if i % 6 == 0:
                    line["text"] = reference.decode(ids)
                out.write(json.dumps(line, separators=(",", ":")) + "\n")
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
