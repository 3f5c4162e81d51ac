"""Writes tables.inc, what the reference tokenizer knows of every code point.

    make_tables.py            needs the pinned `tokenizers` (see VERSION); takes a minute

One tokenizer.json meets several versions of Unicode: the reference's regular expressions, its digits and lower case, its
punctuation and its normal forms each come from another library, and Debian's libraries know yet another. So nothing here
is taken from a database: every code point is given to the reference, and the answers are the table. Only the canonical
combining classes are Python's, each checked by whether the reference reorders a mark of that class.
"""
import pathlib
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

VERSION = "0.23.3"
CATEGORIES = ("Cc Cf Cn Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs").split()
SCRIPTS = ("Han", "Hiragana", "Katakana", "Hangul")
CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL = "".join(map(chr, CODES))


def regex_set(pattern):
    split = pre_tokenizers.Split(Regex(pattern + "+"), "removed", invert=True)
    return {ord(c) for piece, _ in split.pre_tokenize_str(ALL) for c in piece}


def split_set(split):
    """The code points that stand alone between letters."""
    text = "".join("a" + chr(c) for c in CODES)
    return {ord(text[b]) for _, (b, e) in split.pre_tokenize_str(text) if e == b + 1 and b % 2}


def word_set():
    text = "".join("a" + chr(c) + " " for c in CODES)
    return {ord(piece[1]) for piece, _ in pre_tokenizers.Whitespace().pre_tokenize_str(text) if len(piece) == 2 and piece[0] == "a"}


def grapheme_sets():
    """Code points that join what stands before them, that join what follows, that join nothing."""
    split = pre_tokenizers.Split(Regex(r"\X"), "isolated")

    def joined(texts):
        begins, offset = set(), 0
        for text in texts:
            begins.add(offset)
            offset += len(text)
        return {b for b, e in (o for _, o in split.pre_tokenize_str("".join(texts))) if e == b + 2 and b in begins}

    def codes(make):
        texts = [make(chr(c)) for c in CODES]
        return {CODES[b // 3] for b in joined(texts)}

    extend = codes(lambda c: "a" + c + "\x01")
    prepend = codes(lambda c: c + "a\x01")
    no_control = codes(lambda c: c + "\u0301\x01")
    return extend, prepend, set(CODES) - no_control


def one_by_one(normalizer):
    return {c: out for c in CODES if (out := normalizer.normalize_str(chr(c))) != chr(c)}


def combining_classes(nfd):
    classes = {}
    for c in CODES:
        ccc = unicodedata.combining(chr(c))
        if not ccc or c in nfd:
            continue
        other = chr(0x0334) if ccc > 1 else chr(0x0323)  # of class 1 and of class 220
        text = "a" + (chr(c) + other if ccc > 1 else other + chr(c))
        if normalizers.NFD().normalize_str(text) != text:
            classes[c] = ccc
    return classes


def hangul(c):
    return 0xAC00 <= c <= 0xD7A3


def compositions(nfd, nfc):
    pairs = []
    for c, whole in nfd.items():
        if c in nfc or hangul(c):
            continue
        first = normalizers.NFC().normalize_str(whole[:-1])
        if len(first) == 1 and normalizers.NFC().normalize_str(first + whole[-1]) == chr(c):
            pairs.append((ord(first), ord(whole[-1]), c))
        else:
            raise SystemExit(f"U+{c:04X} is composed of no pair")
    return sorted(pairs)


def write_array(out, kind, name, values):
    out.append(f"constexpr {kind} {name}[] = {{")
    line = "   "
    for value in values:
        text = f" {value:#x},"
        if len(line) + len(text) > 110:
            out.append(line)
            line = "   "
        line += text
    out += [line, "};"]


def main():
    if tokenizers.__version__ != VERSION:
        raise SystemExit(f"these tables are those of tokenizers {VERSION}; here is {tokenizers.__version__}")
    category = {}
    for index, name in enumerate(CATEGORIES):
        if name != "Cs":
            category.update((c, index) for c in regex_set(rf"\p{{{name}}}"))
    assert len(category) == len(CODES)
    whitespace = {c for c in CODES if not pre_tokenizers.WhitespaceSplit().pre_tokenize_str(chr(c))}
    assert whitespace == regex_set(r"\s")
    nfd, nfkd = one_by_one(normalizers.NFD()), one_by_one(normalizers.NFKD())
    nfc, nfkc = one_by_one(normalizers.NFC()), one_by_one(normalizers.NFKC())
    ccc = combining_classes(nfd)
    pairs = compositions(nfd, nfc)
    seconds = {second for _, second, _ in pairs} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    bare = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    extend, prepend, control = grapheme_sets()
    flags = {
        5: split_set(pre_tokenizers.Digits(individual_digits=True)),
        6: word_set(),
        7: split_set(pre_tokenizers.Punctuation("isolated")),
        8: {c for c in CODES if clean.normalize_str("b" + chr(c)) == "b"},
        9: {c for c in CODES if c not in nfd and bare.normalize_str("b" + chr(c)) == "b"},
        10: {c for c in CODES if normalizers.StripAccents().normalize_str("b" + chr(c)) == "b"},
        11: extend,
        12: prepend,
        13: control,
        14: regex_set(r"\p{Extended_Pictographic}"),
        15: whitespace,
        24: {c for c in nfd if not hangul(c)},
        25: {c for c in nfkd if not hangul(c)},
        26: regex_set(r"\p{Han}"),
        27: regex_set(r"\p{Hiragana}"),
        28: regex_set(r"\p{Katakana}"),
        29: regex_set(r"\p{Hangul}"),
        30: set(nfc) | set(ccc) | seconds,
        31: set(nfkc) | set(ccc) | seconds,
    }
    values = [category.get(c, CATEGORIES.index("Cs")) | ccc.get(c, 0) << 16 for c in range(0x110000)]
    for bit, members in flags.items():
        for c in members:
            values[c] |= 1 << bit
    classes = sorted(set(values))
    assert len(classes) < 1 << 11
    index = {value: i for i, value in enumerate(classes)}
    runs = [c << 11 | index[values[c]] for c in range(0x110000) if c == 0 or values[c] != values[c - 1]]

    def entries(mapping, kind):
        for c, text in sorted(mapping.items()):
            if not hangul(c):
                yield c | len(text) << 21 | kind << 30
                yield from map(ord, text)

    lower = one_by_one(normalizers.Lowercase())
    out = [f"// Written by make_tables.py from tokenizers {VERSION}; not to be edited."]
    write_array(out, "uint32_t", "kClasses", classes)
    write_array(out, "uint32_t", "kRuns", runs)
    write_array(out, "uint32_t", "kDecompositions",
                [*entries(nfd, 1), *entries({c: t for c, t in nfkd.items() if nfd.get(c) != t}, 2)])
    write_array(out, "uint32_t", "kCompositions", [value for pair in pairs for value in pair])
    write_array(out, "uint32_t", "kLowercase", list(entries(lower, 0)))
    pathlib.Path(__file__).with_name("tables.inc").write_text("\n".join(out) + "\n")
    print(f"{len(classes)} classes, {len(runs)} runs, {len(nfd)} and {len(nfkd)} decompositions, {len(pairs)} pairs, {len(lower)} lower")


if __name__ == "__main__":
    main()
