"""Texts and small tokenizers to compare with: made on the spot, the same for a seed.

    texts(seed, megabytes)    English-like prose, code, many scripts, all planes of Unicode, emoji, spaces of every kind, very
                              long words, bytes that are no UTF-8; a list of bytes
    tokenizers(seed, folder)  trains one tokenizer of each kind and writes it; a list of paths

Needs `tokenizers` and `sentencepiece`, which are what Lockstep must agree with.
"""
import base64
import collections
import json
import pathlib
import random
import tempfile

SCRIPTS = [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x17F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5F4), (0x600, 0x6FF),
           (0x900, 0x97F), (0xE00, 0xE5B), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x3040, 0x30FF), (0x4E00, 0x9FFF),
           (0xAC00, 0xD7A3), (0xFB00, 0xFB06), (0xFF00, 0xFFEF), (0x1D400, 0x1D7FF), (0x20000, 0x2A6DF)]
SPACES = " \t\n\r\u00a0\u1680\u2003\u2028\u202f\u3000\u200b\u200d\x0b\x0c\x1c\x85"
EMOJI = "😀😂🥹👍🏽👩‍👩‍👧‍👦🇩🇪❤️©®™️🫠🧑🏿‍🚀"
MARKS = "\u0300\u0301\u0308\u0323\u0334\u0327\u0345\u064b\u0651\u0e33\u0e48\u093f\u094d\u302a\u20dd\ufe0f\u200d"
SPECIAL = ["<|endoftext|>", "<s>", "</s>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "<mask>", "<pad>", "<|eot|>", "<0x0A>", "▁", "▁▁",
           "Ġ", "##a", "<user>", "ſ", "'S", "'ſ", "don't", "I'LL", "we've"]
CODE = ["def f(x, y=0):\n    return x**2 + y\n", "for (int i = 0; i < n; ++i) {\n\t\tsum += a[i];\n\t}\n", "#include <vector>\r\n",
        "if x!=y:\r\n\r\n        pass  # TODO\n", "SELECT * FROM t WHERE id=10234567 AND name LIKE '%x';", "HTTPServerErrorXMLParser2",
        "https://example.com/a/b?c=d&e=f#g", "x = {'a': [1, 2.5e-10, None]}", "\\frac{1}{2}\\alpha", "camelCaseWordsAndSNAKE_CASE"]


class Texts:
    def __init__(self, seed):
        self.random = random.Random(seed)
        syllables = [a + b for a in ["", "b", "c", "d", "st", "th", "tr", "l", "m", "n", "p", "r", "s", "w"] for b in
                     ["a", "e", "i", "o", "u", "ing", "ed", "er", "ion", "al", "y", "ough"]]
        words = random.Random(1)  # the language is the same whatever the seed
        self.words = ["".join(words.choice(syllables) for _ in range(words.choice((1, 1, 2, 2, 3)))) for _ in range(6000)]
        self.weights = [1 / (i + 5) for i in range(len(self.words))]

    def prose(self, words=12):
        out = []
        for word in self.random.choices(self.words, self.weights, k=words):
            draw = self.random.random()
            out.append(word.capitalize() if draw < 0.1 else word.upper() if draw < 0.13 else word)
            if draw > 0.9:
                out[-1] += self.random.choice(",.;:!?") + self.random.choice(["", "", "\n", " "])
            if draw > 0.98:
                out.append(str(self.random.randrange(10 ** self.random.randrange(1, 9))))
        return " ".join(out)

    def script(self):
        low, high = self.random.choice(SCRIPTS)
        return " ".join("".join(chr(self.random.randint(low, high)) for _ in range(self.random.randint(1, 9)))
                        for _ in range(self.random.randint(1, 8)))

    def anything(self):
        def point():
            while True:
                plane = self.random.choice((0, 0, 0, 0, 1, 1, 2, 3, 14, 15, 16))
                c = self.random.randrange(0x10000) | plane << 16
                if not 0xD800 <= c < 0xE000:
                    return chr(c)
        return "".join(point() for _ in range(self.random.randint(1, 30)))

    def marks(self):
        return "".join(self.random.choice("aeiouAEsoqc ①ﬁ가ᄀ한あ" + MARKS + MARKS) for _ in range(self.random.randint(1, 20)))

    def spaces(self):
        return "".join(self.random.choice(SPACES + "   ab1.") for _ in range(self.random.randint(1, 25)))

    def special(self):
        return self.random.choice(["", " ", "  ", "a"]).join(self.random.choice(SPECIAL + ["x", "Hello", "1"])
                                                             for _ in range(self.random.randint(1, 6)))

    def long_word(self):
        draw = self.random.random()
        if draw < 0.3:
            return self.random.choice("aæ字a ") * self.random.randint(50, 1500)
        if draw < 0.6:
            return "".join(self.random.choices("abcdefgh", k=self.random.randint(50, 1500)))
        return "".join(self.random.choices(self.words, self.weights, k=self.random.randint(20, 200)))

    def emoji(self):
        return "".join(self.random.choice(list(EMOJI) + ["a", " ", "👩‍👩‍👧‍👦", "🇩🇪"]) for _ in range(self.random.randint(1, 12)))

    def bad_bytes(self):
        text = bytearray((self.prose(4) + self.script()).encode())
        for _ in range(self.random.randint(1, 4)):
            text.insert(self.random.randrange(len(text) + 1), self.random.choice((0x80, 0xC0, 0xE2, 0xED, 0xF0, 0xF4, 0xFF, 0xBF)))
        return bytes(text)

    def one(self, longest=False):
        kinds = [self.prose] * 6 + [self.script] * 4 + [self.anything, self.marks, self.spaces, self.special, self.emoji]
        kinds += [lambda: self.random.choice(CODE)] * 3 + [self.bad_bytes] + ([self.long_word] if longest else [])
        parts = [self.random.choice(kinds)() for _ in range(self.random.choice((1, 1, 2, 3)))]
        return b" ".join(part if isinstance(part, bytes) else part.encode() for part in parts)


def texts(seed, megabytes):
    maker, out, size = Texts(seed), [b"", b" ", b"\n", b"a"], 0
    while size < megabytes * 1e6:
        lines = maker.random.choice((1, 1, 1, 2, 5, 40))
        out.append(b"\n".join(maker.one(longest=True) for _ in range(lines)))
        size += len(out[-1])
    return out


def as_text(data):
    return data.decode("utf-8", "replace")


# ---- tokenizers --------------------------------------------------------------------------------------------------------

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}"
          r"\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# As cl100k and its kin: possessive, and with classes that only a regular expression has.
OTHER = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+|\w\b")
RULES = "\n".join(["41\t61", "C4\t41 308", "66 69\t78", "2460\t31", "FB01\t66 69", "9\t20", "A\t20", "A0\t20", "3000\t20", "200B\t",
                   "65 301\tE9", "61 308\tE4", "D\t", "FF21\t41", "AD\t", "1F600\t3A 29"])


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def field(data, number):
    """The last field of that number in a message, as bytes."""
    at, found = 0, b""
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 2:
            size, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind) or varint(data, at)[1] - at
        if tag >> 3 == number and kind == 2:
            found = data[at:at + size]
        at += size
    return found


class Makers:
    def __init__(self, seed, folder, vocab, full_rules):
        self.folder, self.vocab, self.full_rules = pathlib.Path(folder), vocab, full_rules
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lines = [as_text(t) for t in texts(seed, 0.25)]

    def common_lines(self):
        """Of the 500 most common characters: trainers want all of theirs in the vocabulary."""
        counts = collections.Counter("".join(self.lines))
        common = {c for c, _ in counts.most_common(500)} - set("\0\n\r")
        return ["".join(c for c in part if c in common) for line in self.lines for part in line.split("\n")]

    def write(self, name, tokenizer, change=None):
        value = json.loads(tokenizer.to_str())
        if change:
            change(value)
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        return path

    def byte_level(self, name, pattern=None, normalizer=None, steps=None, special=("<|endoftext|>",), **options):
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
        tokenizer = Tokenizer(models.BPE(**options.get("bpe", {})))
        if normalizer:
            tokenizer.normalizer = normalizer
        prefix = options.get("prefix", False)
        if steps or pattern:
            steps = steps or [pre_tokenizers.Split(Regex(pattern), "isolated")]
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(prefix, use_regex=False)])
        else:
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(prefix)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.train_from_iterator(self.lines, trainers.BpeTrainer(
            vocab_size=self.vocab, special_tokens=list(special), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
        if options.get("finish"):
            options["finish"](tokenizer)
        return self.write(name, tokenizer, options.get("change"))

    def gpt2(self):
        return self.byte_level("gpt2")

    def llama3(self):
        from tokenizers import processors
        def finish(t):
            t.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
                single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", t.token_to_id("<s>"))])])
        def change(value):
            value["model"]["ignore_merges"] = True
            value["model"]["merges"] = value["model"]["merges"][:-60]  # words that only ignore_merges finds
            value["model"]["merges"] = [" ".join(pair) for pair in value["model"]["merges"]]
        return self.byte_level("llama3", LLAMA3, special=("<s>", "<|eot|>"), finish=finish, change=change)

    def qwen2(self):
        from tokenizers import AddedToken, normalizers
        def finish(t):
            t.add_tokens([AddedToken("<user>", normalized=False, single_word=True), AddedToken("Hello"),
                          AddedToken("\u00e9", normalized=True), AddedToken("  ", rstrip=True)])
        def change(value):
            merges = value["model"]["merges"]
            value["model"]["merges"] = merges + merges[10:14]  # the last rank counts
        return self.byte_level("qwen2", QWEN2, normalizers.NFC(), special=("<|endoftext|>", "<|eot|>"), finish=finish, change=change)

    def tekken(self):
        return self.byte_level("tekken", TEKKEN, special=("<unk>", "<s>", "</s>"))

    def roberta(self):
        from tokenizers import AddedToken, processors
        def finish(t):
            t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
            t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))
        return self.byte_level("roberta", special=("<s>", "<pad>", "</s>", "<unk>"), prefix=True, finish=finish)

    def regexes(self):
        from tokenizers import Regex, pre_tokenizers as p
        steps = [p.Split(Regex(r"\p{N}{1,3}"), "isolated"), p.Split(Regex("[一-龥\u3040-ゟ゠-ヿ]+"), "isolated"),
                 p.Split("::", "merged_with_previous"), p.Split(Regex("[!?]"), "merged_with_next"), p.Split(Regex(OTHER), "removed", True),
                 p.Digits(individual_digits=True)]
        return self.byte_level("regexes", steps=steps)

    def sentence_bpe(self, name, normalizer, pre_tokenizer, decoder, change):
        """Characters and ▁, with all bytes in the vocabulary."""
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
        tokenizer.train_from_iterator(self.lines, trainers.BpeTrainer(vocab_size=self.vocab + 700, special_tokens=special,
                                                                      limit_alphabet=700, show_progress=False))
        tokenizer.normalizer, tokenizer.decoder = normalizer, decoder
        tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.Metaspace()
        def finish(value):
            value["added_tokens"] = [t for t in value["added_tokens"] if not t["content"].startswith("<0x")]
            if pre_tokenizer is None:
                value["pre_tokenizer"] = None
            change(value)
        return self.write(name, tokenizer, finish)

    def llama2(self):
        from tokenizers import decoders as d, normalizers as n
        template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                    "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                             {"SpecialToken": {"id": "<s>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
                    "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
        return self.sentence_bpe("llama2", n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")]), None,
                                 d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]),
                                 lambda value: value.update(post_processor=template))

    def gemma(self):
        from tokenizers import decoders as d, normalizers as n, pre_tokenizers as p
        def change(value):
            vocab, merges = value["model"]["vocab"], value["model"]["merges"]
            for a, b in (("▁", "▁"), ("▁▁", "▁▁"), ("e", "▁"), ("e▁", "t")):  # one that reaches over a ▁
                if a in vocab and b in vocab:
                    vocab.setdefault(a + b, len(vocab))
                    merges.append([a, b])
            first = max(vocab.values()) + 1
            value["added_tokens"] += [{"id": first, "content": "\n\n", "single_word": False, "lstrip": False, "rstrip": False,
                                       "normalized": False, "special": False}]
        return self.sentence_bpe("gemma", n.Replace(" ", "▁"), p.Split(" ", "merged_with_previous"),
                                 d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse()]), change)

    def phi(self):
        """No byte fallback, no unknown token: characters vanish. Metaspace on the first word only, and not split."""
        from tokenizers import decoders as d, normalizers as n, pre_tokenizers as p
        def change(value):
            value["model"].update(byte_fallback=False, unk_token=None, fuse_unk=False)
        return self.sentence_bpe("phi", n.Strip(left=True, right=False), p.Metaspace(prepend_scheme="first", split=False), d.Metaspace(), change)

    def unknowns(self):
        from tokenizers import decoders as d, normalizers as n, pre_tokenizers as p
        def change(value):
            value["model"].update(byte_fallback=True, fuse_unk=False)
            value["model"]["vocab"] = {k: v for k, v in value["model"]["vocab"].items() if k not in ("<0xE2>", "<0xF0>")}
        return self.sentence_bpe("unknowns", n.NFKC(), p.Metaspace(prepend_scheme="never"), d.Metaspace(prepend_scheme="never"), change)

    def word_piece(self, name, normalizer, pre_tokenizer, decoder=None):
        from tokenizers import Tokenizer, decoders, models, processors, trainers
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
        tokenizer.decoder = decoder or decoders.WordPiece()
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        tokenizer.train_from_iterator(self.lines, trainers.WordPieceTrainer(vocab_size=self.vocab + 1200, special_tokens=special,
                                                                            limit_alphabet=1000, show_progress=False))
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        return self.write(name, tokenizer)

    def bert(self):
        from tokenizers import normalizers, pre_tokenizers
        return self.word_piece("bert", normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())

    def cased(self):
        from tokenizers import decoders as d, normalizers as n, pre_tokenizers as p
        steps = [n.NFKD(), n.StripAccents(), n.Lowercase(), n.Nmt(), n.Strip()]
        return self.word_piece("cased", n.Sequence(steps), p.Sequence([p.WhitespaceSplit(), p.Punctuation("contiguous"), p.Digits()]),
                               d.WordPiece(cleanup=False))

    def clip(self):
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", continuing_subword_prefix="##"))
        tokenizer.normalizer = normalizers.Lowercase()
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.decoder = decoders.BPEDecoder()
        tokenizer.train_from_iterator(self.lines, trainers.BpeTrainer(
            vocab_size=self.vocab + 1500, special_tokens=["<unk>"], limit_alphabet=500, end_of_word_suffix="</w>",
            continuing_subword_prefix="##", show_progress=False))
        return self.write("clip", tokenizer)

    def sentencepiece(self, name, **options):
        import sentencepiece
        with tempfile.TemporaryDirectory() as work:
            rules = pathlib.Path(work) / "rules.tsv"
            rules.write_text(RULES)
            source = pathlib.Path(work) / "text"
            source.write_text("\n".join(self.common_lines()))
            if options.pop("own_rules", False):
                options["normalization_rule_tsv"] = str(rules)
            sentencepiece.SentencePieceTrainer.train(
                input=str(source), model_prefix=f"{work}/m", character_coverage=0.98, num_threads=1, minloglevel=2,
                max_sentence_length=100000, hard_vocab_limit=False, **{"vocab_size": self.vocab + 600, **options})
            path = self.folder / f"{name}.model"
            path.write_bytes((pathlib.Path(work) / "m.model").read_bytes())
        return path

    def charsmap(self):
        path = self.sentencepiece("map", **({"normalization_rule_name": "nmt_nfkc"} if self.full_rules else {"own_rules": True}))
        data = field(field(path.read_bytes(), 3), 2)
        path.unlink()
        return base64.b64encode(data).decode()

    def unigram(self, name, change, metaspace):
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.train_from_iterator(self.common_lines(), trainers.UnigramTrainer(
            vocab_size=self.vocab + 600, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
        tokenizer.pre_tokenizer, tokenizer.decoder = metaspace, decoders.Metaspace()
        tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
        def finish(value):
            value["model"]["vocab"] = value["model"]["vocab"][:3000]
            value["normalizer"] = {"type": "Sequence", "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": self.charsmap()},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}]}
            change(value)
        return self.write(name, tokenizer, finish)

    def t5(self):
        from tokenizers import pre_tokenizers
        return self.unigram("t5", lambda value: None, pre_tokenizers.Metaspace())

    def mbart(self):
        from tokenizers import pre_tokenizers
        def change(value):
            value["model"]["byte_fallback"] = True
            value["model"]["vocab"] += [[f"<0x{b:02X}>", -20.0] for b in range(256)]
        return self.unigram("mbart", change, pre_tokenizers.Metaspace(prepend_scheme="first", split=False))

    def sp_unigram(self):
        return self.sentencepiece("sp_unigram", user_defined_symbols=["<user>", "ing▁", "don't"], own_rules=True)

    def sp_bpe(self):
        return self.sentencepiece("sp_bpe", model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                                  remove_extra_whitespaces=False, user_defined_symbols=["<user>", "  "], vocab_size=self.vocab + 900)

    def sp_plain(self):
        return self.sentencepiece("sp_plain", model_type="bpe", treat_whitespace_as_suffix=True,
                                  **({"normalization_rule_name": "nmt_nfkc"} if self.full_rules else {"own_rules": True}))

    def sp_bytes(self):
        return self.sentencepiece("sp_bytes", byte_fallback=True, normalization_rule_name="identity", add_dummy_prefix=False,
                                  vocab_size=self.vocab + 900)


KINDS = ("gpt2 llama3 qwen2 tekken roberta regexes llama2 gemma phi unknowns bert cased clip t5 mbart "
         "sp_unigram sp_bpe sp_plain sp_bytes").split()


def tokenizers(seed, folder, vocab=900, full_rules=False, kinds=KINDS):
    makers = Makers(seed, folder, vocab, full_rules)
    return [getattr(makers, kind)() for kind in kinds]


class Reference:
    """What a file gives in the library that it is meant for."""

    def __init__(self, path):
        self.pieces = path.suffix == ".model"
        if self.pieces:
            import sentencepiece
            self.model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        else:
            import tokenizers as library
            self.model = library.Tokenizer.from_file(str(path))

    def encode(self, data, special):
        if self.pieces:
            return self.model.encode(data if isinstance(data, bytes) else data.encode())
        return self.model.encode(as_text(data), add_special_tokens=special).ids

    def decode(self, ids):
        return self.model.decode(ids) if self.pieces else self.model.decode(ids, skip_special_tokens=True)
