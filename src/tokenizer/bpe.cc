#include "tokenizer/bpe.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/merging.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

constexpr uint32_t kNone = StringIds::kNone;
constexpr auto kIgnore = [](uint32_t, uint32_t, uint32_t) {};

// Printable bytes stand for themselves, the others for the code points from 256 on, in their order.
std::array<char32_t, 256> make_byte_level() {
  std::array<char32_t, 256> chars{};
  char32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    chars[byte] = printable ? byte : next++;
  }
  return chars;
}

const std::array<char32_t, 256>& byte_level() {
  static const std::array<char32_t, 256> chars = make_byte_level();
  return chars;
}

}  // namespace

char32_t byte_level_char(unsigned char byte) { return byte_level()[byte]; }

uint32_t byte_level_byte(char32_t c) {
  static const std::array<uint16_t, 512> bytes = [] {
    std::array<uint16_t, 512> back{};
    back.fill(256);
    for (uint32_t byte = 0; byte < 256; ++byte) back[byte_level()[byte]] = static_cast<uint16_t>(byte);
    return back;
  }();
  return c < bytes.size() ? bytes[c] : 256;
}

bool from_byte_level(std::string_view text, std::string& bytes) {
  bytes.clear();
  for (size_t i = 0; i < text.size();) {
    const DecodedChar c = decode_char(text.data() + i);
    const uint32_t byte = byte_level_byte(c.value);
    if (byte > 255) return false;
    bytes.push_back(static_cast<char>(byte));
    i += c.bytes;
  }
  return true;
}

Bpe::Bpe(BpeSpec spec, bool over_bytes, const std::string& where)
    : where_(where),
      over_bytes_(over_bytes),
      fuse_unk_(spec.fuse_unk),
      byte_fallback_(spec.byte_fallback),
      ignore_merges_(spec.ignore_merges),
      unk_token_(std::move(spec.unk_token)),
      prefix_(std::move(spec.continuing_prefix)),
      suffix_(std::move(spec.word_suffix)) {
  LOCKSTEP_CHECK(!over_bytes || can_work_on_bytes(spec),
                 "a BPE over bytes with a prefix, a suffix or byte fallback");
  spelled_.reserve(spec.vocab.size(), spec.vocab.size() * 8);
  words_.reserve(spec.vocab.size(), spec.vocab.size() * 8);
  std::string bytes;
  for (auto& [token, id] : spec.vocab) {
    spelled_.set(token, id);
    if (id >= tokens_.size()) {
      tokens_.resize(id + 1);
      has_token_.resize(id + 1);
    }
    bytes = token;
    // A token that no bytes are written as can never be met in a text.
    if (!bytes.empty() && (!over_bytes_ || from_byte_level(token, bytes))) {
      words_.set(bytes, id);
      const char32_t first =
          over_bytes_ ? static_cast<unsigned char>(bytes[0]) : decode_char(bytes.data()).value;
      if (bytes.size() == (over_bytes_ ? 1 : char_bytes(first))) {
        if (first >= chars_.size()) chars_.resize(first + 1, kNone);
        chars_[first] = id;
      }
    }
    tokens_[id] = std::move(token);
    has_token_[id] = true;
  }
  for (uint32_t byte = 0; byte < 256; ++byte)
    fallback_[byte] = spelled_.find(fmt::format("<0x{:02X}>", byte));
  if (!unk_token_.empty()) unk_ = spelled_.find(unk_token_);

  merges_.reserve(spec.merges.size());
  uint32_t rank = 0;
  for (const auto& [left, right] : spec.merges) {
    const auto id = [&](const std::string& token) {
      const uint32_t found = spelled_.find(token);
      if (found == kNone)
        throw UserError("{}: model.merges[{}] has the token '{}', which model.vocab does not have", where_,
                        rank, printable(token));
      return found;
    };
    if (right.size() < prefix_.size())
      throw UserError("{}: model.merges[{}]: '{}' is shorter than continuing_subword_prefix '{}'", where_,
                      rank, printable(right), printable(prefix_));
    const uint32_t left_id = id(left), right_id = id(right);
    const uint32_t merged = id(left + right.substr(prefix_.size()));
    merges_.set(left_id, right_id, {rank, merged});
    merged_.push_back(merged);
    ++rank;
  }
}

uint32_t Bpe::unknown() const {
  if (unk_ == kNone)
    throw UserError(
        "{}: the text has a character that the vocabulary lacks, and model.unk_token '{}' is not in it "
        "either",
        where_, printable(unk_token_));
  return unk_;
}

// The symbols of a character: its token, its bytes, or the unknown token, which waits in `pending` to be
// fused. The order of these steps is the reference's, to the letter: an unknown token that waits is overtaken
// by bytes.
void Bpe::add_char(std::string_view symbol, uint32_t& pending, ModelScratch& scratch) const {
  if (byte_fallback_) {
    const bool whole = std::all_of(symbol.begin(), symbol.end(), [this](char c) {
      return fallback_[static_cast<unsigned char>(c)] != kNone;
    });
    if (whole) {
      for (const char c : symbol) scratch.symbols.push_back(fallback_[static_cast<unsigned char>(c)]);
      return;
    }
  }
  if (unk_token_.empty()) return;
  if (pending != kNone && !fuse_unk_) scratch.symbols.push_back(pending);
  if (pending == kNone || !fuse_unk_) pending = unknown();
}

void Bpe::symbols_of_chars(std::string_view word, ModelScratch& scratch) const {
  const bool plain = prefix_.empty() && suffix_.empty();
  uint32_t pending = kNone;
  std::string decorated;
  for (size_t i = 0; i < word.size();) {
    const DecodedChar c = decode_char(word.data() + i);
    std::string_view symbol = word.substr(i, c.bytes);
    uint32_t id = kNone;
    if (plain) {
      if (c.value < chars_.size()) id = chars_[c.value];
    } else {
      decorated = i > 0 ? prefix_ : "";
      decorated.append(symbol);
      if (i + c.bytes == word.size()) decorated.append(suffix_);
      symbol = decorated;
      id = words_.find(decorated);
    }
    i += c.bytes;
    if (id == kNone) {
      add_char(symbol, pending, scratch);
      continue;
    }
    if (pending != kNone) {
      scratch.symbols.push_back(pending);
      pending = kNone;
    }
    scratch.symbols.push_back(id);
  }
  if (pending != kNone) scratch.symbols.push_back(pending);
}

void Bpe::symbols_of_bytes(std::string_view word, ModelScratch& scratch) const {
  uint32_t pending = kNone;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    const uint32_t id = byte < chars_.size() ? chars_[byte] : kNone;
    if (id == kNone) {
      add_char({}, pending, scratch);
      continue;
    }
    if (pending != kNone) {
      scratch.symbols.push_back(pending);
      pending = kNone;
    }
    scratch.symbols.push_back(id);
  }
  if (pending != kNone) scratch.symbols.push_back(pending);
}

void Bpe::encode_word(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    const uint32_t whole = words_.find(word);
    if (whole != kNone) {
      ids.push_back(static_cast<int32_t>(whole));
      return;
    }
  }
  scratch.symbols.clear();
  if (over_bytes_) {
    symbols_of_bytes(word, scratch);
  } else {
    symbols_of_chars(word, scratch);
  }
  merge_symbols<false>(merges_, scratch, kIgnore);
  for (const uint32_t symbol : scratch.symbols) ids.push_back(static_cast<int32_t>(symbol));
}

std::optional<int32_t> Bpe::id_of(std::string_view token) const {
  const uint32_t id = spelled_.find(token);
  if (id == kNone) return std::nullopt;
  return static_cast<int32_t>(id);
}

const std::string* Bpe::token_of(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= tokens_.size() || !has_token_[static_cast<size_t>(id)])
    return nullptr;
  return &tokens_[static_cast<size_t>(id)];
}

bool Bpe::cuts_before(std::string_view mark, bool (&before)[256]) const {
  std::fill(std::begin(before), std::end(before), false);
  // The mark must be a symbol of its own, so that an unknown run ends at it, and no word may be looked up
  // whole.
  if (over_bytes_ || ignore_merges_ || !prefix_.empty() || !suffix_.empty() || spelled_.find(mark) == kNone)
    return false;
  std::fill(std::begin(before), std::end(before), true);
  // Behind another mark there is no cut: runs of spaces are tokens.
  before[static_cast<unsigned char>(mark.back())] = false;
  for (const uint32_t id : merged_) {
    const std::string_view token = tokens_[id];
    for (size_t at = token.find(mark, 1); at != std::string_view::npos; at = token.find(mark, at + 1)) {
      const std::string_view left = token.substr(0, at);
      // Tokens that stand for other bytes than they are spelled with: any byte may come before.
      if (byte_fallback_ && left.size() >= 6 && left.substr(left.size() - 6).starts_with("<0x")) return false;
      if (!unk_token_.empty() && left.ends_with(unk_token_)) return false;
      before[static_cast<unsigned char>(left.back())] = false;
    }
  }
  return true;
}

}  // namespace lockstep::tok
