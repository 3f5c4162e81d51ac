#include "tokenizer/pre_tokenizers.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pattern.h"
#include "tokenizer/splitting.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

// Words cut further, each on its own, by `cut(text, word, out)`.
template <typename Cut>
void cut_words(TextWords& words, const Cut& cut) {
  words.cut.clear();
  for (const TextRange word : words.words) cut(words.text, word, words.cut);
  words.words.swap(words.cut);
  if (words.words.empty() || words.words.front().begin > 0) words.from_start = false;
}

// Words written anew by `write(word, out)`, which may change their text.
template <typename Write>
void rewrite_words(TextWords& words, const Write& write) {
  words.spare.clear();
  for (TextRange& word : words.words) {
    const auto begin = static_cast<uint32_t>(words.spare.size());
    write(words.text.substr(word.begin, word.end - word.begin), &word == words.words.data(), words.spare);
    word = {begin, static_cast<uint32_t>(words.spare.size())};
  }
  words.changed.swap(words.spare);
  words.text = words.changed;
}

class ScannerSplit : public PreTokenizer {
 public:
  explicit ScannerSplit(Scanner scanner) : scanner_(scanner) {}
  void apply(TextWords& words) const override { cut_words(words, scanner_); }

 private:
  Scanner scanner_;
};

class PatternSplit : public PreTokenizer {
 public:
  PatternSplit(Pattern pattern, SplitBehaviour behaviour, bool invert)
      : pattern_(std::move(pattern)), behaviour_(behaviour), invert_(invert) {}
  void apply(TextWords& words) const override {
    cut_words(words, [&](std::string_view text, TextRange word, std::vector<TextRange>& out) {
      words.matches.clear();
      pattern_.find_all(text, word, words.matches);
      split(word, words.matches, invert_, behaviour_, out);
    });
  }

 private:
  Pattern pattern_;
  SplitBehaviour behaviour_;
  bool invert_;
};

// Every character with the flag is a delimiter.
class FlagSplit : public PreTokenizer {
 public:
  FlagSplit(uint32_t flag, SplitBehaviour behaviour) : flag_(flag), behaviour_(behaviour) {}
  void apply(TextWords& words) const override {
    const CodePoints& points = code_points();
    cut_words(words, [&](std::string_view text, TextRange word, std::vector<TextRange>& out) {
      words.matches.clear();
      for (uint32_t i = word.begin; i < word.end;) {
        const DecodedChar c = decode_char(text.data() + i);
        if (points[c.value] & flag_) words.matches.push_back({i, i + c.bytes});
        i += c.bytes;
      }
      split(word, words.matches, false, behaviour_, out);
    });
  }

 private:
  uint32_t flag_;
  SplitBehaviour behaviour_;
};

// Words of one kind of characters: kind(flags) is 0 for what separates, and words end where it changes; one
// of kind `alone` is a word of its own.
template <typename Kind>
void cut_by_kind(TextWords& words, const Kind& kind, int alone) {
  const CodePoints& points = code_points();
  cut_words(words, [&](std::string_view text, TextRange word, std::vector<TextRange>& out) {
    uint32_t begin = word.begin;
    int last = 0;
    for (uint32_t i = word.begin; i < word.end;) {
      const DecodedChar c = decode_char(text.data() + i);
      const int now = kind(points[c.value]);
      if (now != last || now == alone) {
        if (last) out.push_back({begin, i});
        begin = i;
        last = now;
      }
      i += c.bytes;
    }
    if (last) out.push_back({begin, word.end});
  });
}

class BertWords : public PreTokenizer {
 public:
  void apply(TextWords& words) const override {
    cut_by_kind(
        words, [](uint32_t flags) { return flags & kSpaceChar     ? 0
                                           : flags & kPunctuation ? 2
                                                                  : 1; }, 2);
  }
};

class WhitespaceWords : public PreTokenizer {
 public:
  void apply(TextWords& words) const override {
    cut_by_kind(
        words, [](uint32_t flags) { return flags & kWordChar    ? 1
                                           : flags & kSpaceChar ? 0
                                                                : 2; }, -1);
  }
};

class ByteLevelWords : public PreTokenizer {
 public:
  ByteLevelWords(bool prefix_space, bool use_regex, bool keep_bytes)
      : prefix_space_(prefix_space), use_regex_(use_regex), keep_bytes_(keep_bytes) {}

  void apply(TextWords& words) const override {
    const auto lacks_space = [&](TextRange word) { return words.text[word.begin] != ' '; };
    if (prefix_space_ && std::any_of(words.words.begin(), words.words.end(), lacks_space)) {
      rewrite_words(words, [](std::string_view word, bool, std::string& out) {
        if (!word.starts_with(' ')) out.push_back(' ');
        out.append(word);
      });
    }
    if (use_regex_) cut_words(words, scan_gpt2);
    if (keep_bytes_) return;
    rewrite_words(words, [](std::string_view word, bool, std::string& out) {
      for (const char c : word) append_char(out, byte_level_char(static_cast<unsigned char>(c)));
    });
  }

 private:
  bool prefix_space_, use_regex_, keep_bytes_;
};

class MetaspaceWords : public PreTokenizer {
 public:
  enum class Prepend : uint8_t { kAlways, kFirst, kNever };
  MetaspaceWords(std::string mark, Prepend prepend, bool split)
      : mark_(std::move(mark)), prepend_(prepend), split_(split) {}

  void apply(TextWords& words) const override {
    const bool from_start = words.from_start;
    rewrite_words(words, [&](std::string_view word, bool first, std::string& out) {
      const bool wanted =
          prepend_ == Prepend::kAlways || (prepend_ == Prepend::kFirst && first && from_start);
      if (wanted && !word.starts_with(' ') && !word.starts_with(mark_)) out.append(mark_);
      while (!word.empty()) {
        const void* space = std::memchr(word.data(), ' ', word.size());
        const size_t bytes =
            space ? static_cast<size_t>(static_cast<const char*>(space) - word.data()) : word.size();
        out.append(word.substr(0, bytes));
        if (space) out.append(mark_);
        word.remove_prefix(space ? bytes + 1 : bytes);
      }
    });
    if (!split_) return;
    // Each mark begins a word.
    cut_words(words, [&](std::string_view text, TextRange word, std::vector<TextRange>& out) {
      const std::string_view part = text.substr(0, word.end);
      uint32_t begin = word.begin;
      for (size_t at = part.find(mark_, begin + 1); at != std::string_view::npos;
           at = part.find(mark_, at + 1)) {
        out.push_back({begin, static_cast<uint32_t>(at)});
        begin = static_cast<uint32_t>(at);
      }
      out.push_back({begin, word.end});
    });
  }

 private:
  std::string mark_;
  Prepend prepend_;
  bool split_;
};

class MarkCutter : public PreTokenizer {
 public:
  MarkCutter(std::string mark, const bool (&before)[256]) : mark_(std::move(mark)) {
    std::copy(std::begin(before), std::end(before), std::begin(before_));
  }

  void apply(TextWords& words) const override {
    const char lead = mark_[0];
    cut_words(words, [&](std::string_view text, TextRange word, std::vector<TextRange>& out) {
      uint32_t begin = word.begin;
      for (uint32_t i = begin + 1; i < word.end; ++i) {
        const auto* found = static_cast<const char*>(std::memchr(text.data() + i, lead, word.end - i));
        if (!found) break;
        i = static_cast<uint32_t>(found - text.data());
        if (!before_[static_cast<unsigned char>(text[i - 1])] ||
            !text.substr(i, word.end - i).starts_with(mark_))
          continue;
        out.push_back({begin, i});
        begin = i;
      }
      out.push_back({begin, word.end});
    });
  }

 private:
  std::string mark_;
  bool before_[256];
};

class SequenceOfPreTokenizers : public PreTokenizer {
 public:
  explicit SequenceOfPreTokenizers(std::vector<std::unique_ptr<PreTokenizer>> steps)
      : steps_(std::move(steps)) {}
  void apply(TextWords& words) const override {
    for (const auto& step : steps_) step->apply(words);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

std::unique_ptr<PreTokenizer> make_split(JsonPart& part) {
  const SplitBehaviour behaviour = read_behaviour(part, "behavior");
  const bool invert = part.flag("invert");
  const nlohmann::json& pattern = part.need("pattern");
  const bool isolated = behaviour == SplitBehaviour::kIsolated;
  if (pattern.is_object() && pattern.contains("Regex") && pattern["Regex"].is_string()) {
    const Scanner scanner = scanner_for(pattern["Regex"].get_ref<const std::string&>());
    // It cuts the whole text: where matches are removed and the gaps kept, or the other way round, too.
    if (scanner && (isolated || (behaviour == SplitBehaviour::kRemoved && invert)))
      return std::make_unique<ScannerSplit>(scanner);
  }
  return std::make_unique<PatternSplit>(read_pattern(part, "pattern"), behaviour, invert);
}

std::unique_ptr<PreTokenizer> make_metaspace(JsonPart& part) {
  using Prepend = MetaspaceWords::Prepend;
  static constexpr std::string_view kSchemes[] = {"always", "first", "never"};
  std::string mark;
  append_char(mark, part.character("replacement"));
  const std::string scheme = part.find("prepend_scheme") ? part.choice("prepend_scheme", kSchemes) : "always";
  Prepend prepend = scheme == "always"  ? Prepend::kAlways
                    : scheme == "first" ? Prepend::kFirst
                                        : Prepend::kNever;
  if (!part.flag("add_prefix_space", true) && prepend != Prepend::kNever) {
    part.refuse("add_prefix_space", fmt::format("is false, but prepend_scheme is '{}'", scheme));
  }
  part.ignore({"str_rep"});
  return std::make_unique<MetaspaceWords>(std::move(mark), prepend, part.flag("split", true));
}

}  // namespace

void TextWords::reset(std::string_view whole, bool at_start) {
  text = whole;
  from_start = at_start;
  words.clear();
  if (!whole.empty()) words.push_back({0, static_cast<uint32_t>(whole.size())});
}

std::unique_ptr<PreTokenizer> make_mark_cutter(std::string mark, const bool (&before)[256]) {
  return std::make_unique<MarkCutter>(std::move(mark), before);
}

bool ends_in_byte_level(JsonPart part) {
  const std::string type = part.text("type", "");
  if (type == "ByteLevel") return true;
  if (type != "Sequence" || !part.find("pretokenizers")) return false;
  std::vector<JsonPart> steps = part.parts("pretokenizers");
  const auto count = std::count_if(steps.begin(), steps.end(), [](JsonPart& step) {
    return step.text("type", "") == "ByteLevel" || step.text("type", "") == "Sequence";
  });
  return count == 1 && steps.back().text("type", "") == "ByteLevel";
}

std::unique_ptr<PreTokenizer> make_pre_tokenizer(JsonPart& part, bool over_bytes) {
  static constexpr std::string_view kKnown[] = {
      "ByteLevel",        "Split",       "Digits",   "Whitespace",        "Metaspace", "WhitespaceSplit",
      "BertPreTokenizer", "Punctuation", "Sequence", "CharDelimiterSplit"};
  const std::string type = part.choice("type", kKnown);
  std::unique_ptr<PreTokenizer> made;
  if (type == "ByteLevel") {
    made = std::make_unique<ByteLevelWords>(part.flag("add_prefix_space"), part.flag("use_regex", true),
                                            over_bytes);
    part.ignore({"trim_offsets"});
  }
  if (type == "Split") made = make_split(part);
  if (type == "Digits") {
    made = std::make_unique<FlagSplit>(
        kNumeric, part.flag("individual_digits") ? SplitBehaviour::kIsolated : SplitBehaviour::kContiguous);
  }
  if (type == "Whitespace") made = std::make_unique<WhitespaceWords>();
  if (type == "WhitespaceSplit") made = std::make_unique<FlagSplit>(kSpaceChar, SplitBehaviour::kRemoved);
  if (type == "BertPreTokenizer") made = std::make_unique<BertWords>();
  if (type == "Punctuation") {
    made = std::make_unique<FlagSplit>(
        kPunctuation, part.find("behavior") ? read_behaviour(part, "behavior") : SplitBehaviour::kIsolated);
  }
  if (type == "CharDelimiterSplit") {
    made = std::make_unique<PatternSplit>(
        Pattern::literal(from_chars(std::u32string(1, part.character("delimiter"))), part.place("delimiter")),
        SplitBehaviour::kRemoved, false);
  }
  if (type == "Metaspace") made = make_metaspace(part);
  if (type == "Sequence") {
    std::vector<std::unique_ptr<PreTokenizer>> steps;
    for (JsonPart& step : part.parts("pretokenizers")) steps.push_back(make_pre_tokenizer(step, over_bytes));
    made = std::make_unique<SequenceOfPreTokenizers>(std::move(steps));
  }
  part.finish();
  return made;
}

}  // namespace lockstep::tok
