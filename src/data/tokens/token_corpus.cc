#include "data/tokens/token_corpus.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::string_view kMegatronMagic{"MMIDIDX\0\0", 9};
constexpr std::string_view kOldMagic{"TNTIDX\0\0", 8};
constexpr int64_t kMegatronHeader = 34;
constexpr int32_t kLlmC16 = 20240520, kLlmC32 = 20240801;
constexpr int64_t kLlmCHeader = 1024;
constexpr int64_t kPiece = 1 << 16;  // entries of a table that are held at a time

template <typename T>
T number_at(const ByteSource& shard, int64_t offset) {
  std::array<char, sizeof(T)> bytes{};
  shard.read(offset, bytes);
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

template <typename T>
void numbers_at(const ByteSource& shard, int64_t offset, std::span<T> out) {
  shard.read(offset, {reinterpret_cast<char*>(out.data()), out.size_bytes()});
}

// The widths of the element types that hold tokens, by Megatron's codes; 0: not whole numbers.
struct MegatronType {
  int width;
  bool is_signed;
};
constexpr std::array<MegatronType, 9> kMegatronTypes{
    {{0, false}, {1, false}, {1, true}, {2, true}, {4, true}, {8, true}, {0, false}, {0, false}, {2, false}}};

template <typename T>
void widen(const char* bytes, int64_t count, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if constexpr (sizeof(T) >= 4)
      out[i] = static_cast<uint64_t>(value) <= 0x7fffffff ? static_cast<int32_t>(value) : -1;
    else
      out[i] = value < T{0} ? -1 : static_cast<int32_t>(value);
  }
}

}  // namespace

TokenCorpus::TokenCorpus(const ByteSource& shard) {
  std::array<char, 12> head{};
  const auto held = static_cast<size_t>(std::min<int64_t>(shard.size(), head.size()));
  shard.read(0, std::span(head).first(held));
  const std::string_view text(head.data(), held);
  int32_t magic = 0;
  std::memcpy(&magic, head.data(), sizeof magic);
  if (text.starts_with(kMegatronMagic)) {
    read_megatron(shard);
  } else if (text.starts_with(kTokenMagic)) {
    read_own(shard);
  } else if (magic == kLlmC16 || magic == kLlmC32) {
    read_llm_c(shard, magic == kLlmC32);
  } else if (text.starts_with(kOldMagic)) {
    throw UserError("{}: an index of the older kind (TNTIDX); write the corpus again with MMIDIDX",
                    shard.name());
  } else {
    throw UserError(
        "{}: not a corpus of tokens: no .idx lies beside it, and it begins neither as an llm.c shard nor "
        "with "
        "LOCKTOK",
        shard.name());
  }
}

void TokenCorpus::read_megatron(const ByteSource& shard) {
  if (shard.size() < kMegatronHeader)
    throw UserError("{}: the index ends within its header of {} bytes", shard.name(), kMegatronHeader);
  const auto version = number_at<uint64_t>(shard, 9);
  if (version != 1)
    throw UserError("{} at byte 9 of its index: version {} is not known; version 1 is", shard.name(),
                    version);
  const auto code = number_at<uint8_t>(shard, 17);
  if (code >= kMegatronTypes.size() || kMegatronTypes[code].width == 0)
    throw UserError(
        "{} at byte 17 of its index: element type {} does not hold tokens; 1 to 5 and 8 do (uint8, int8, "
        "int16, int32, int64, uint16)",
        shard.name(), code);
  width_ = kMegatronTypes[code].width;
  signed_ = kMegatronTypes[code].is_signed;
  const auto sequences = number_at<uint64_t>(shard, 18);
  const auto entries = number_at<uint64_t>(shard, 26);
  const auto left = static_cast<uint64_t>(shard.size() - kMegatronHeader);
  if (sequences > left / 12 || entries > (left - sequences * 12) / 8)
    throw UserError("{} at byte 18 of its index: {} sequences and {} document ends do not fit its {} bytes",
                    shard.name(), sequences, entries, shard.size());
  if (entries < 1) throw UserError("{} at byte 26 of its index: no documents are listed", shard.name());
  sequences_ = static_cast<int64_t>(sequences);
  documents_ = static_cast<int64_t>(entries) - 1;
  lengths_at_ = kMegatronHeader;
  pointers_at_ = lengths_at_ + sequences_ * 4;
  sequence_at_ = pointers_at_ + sequences_ * 8;
  tokens_at_ = sequence_at_ + (documents_ + 1) * 8;
  int64_t described = 0;
  if (sequences_ > 0) {
    const int64_t length = number_at<int32_t>(shard, pointers_at_ - 4);
    const int64_t pointer = number_at<int64_t>(shard, sequence_at_ - 8);
    if (length < 0 || pointer < 0 || pointer > shard.size() || pointer % width_ != 0)
      throw UserError("{} at byte {} of its index: the last sequence has {} tokens from byte {} on",
                      shard.name(), sequence_at_ - 8, length, pointer);
    described = pointer + length * width_;
  }
  // An index may end with one byte per sequence: its mode.
  const int64_t modes = shard.size() - tokens_at_ - described;
  if (modes != 0 && modes != sequences_)
    throw UserError(
        "{}: its index describes {} bytes of tokens, but {} bytes are there; the file is cut, or the index "
        "is "
        "that of another",
        shard.name(), described, shard.size() - tokens_at_);
  tokens_at_ += modes;
  tokens_ = described / width_;
}

// Lengths and pointers say the same thing twice.
void TokenCorpus::check_megatron_sequences(const ByteSource& shard) const {
  std::vector<int32_t> lengths;
  std::vector<int64_t> pointers;
  int64_t sum = 0;
  for (int64_t first = 0; first < sequences_; first += kPiece) {
    const auto count = static_cast<size_t>(std::min(kPiece, sequences_ - first));
    lengths.resize(count);
    pointers.resize(count);
    numbers_at(shard, lengths_at_ + first * 4, std::span(lengths));
    numbers_at(shard, pointers_at_ + first * 8, std::span(pointers));
    for (size_t i = 0; i < count; ++i) {
      if (lengths[i] < 0 || pointers[i] != sum * width_)
        throw UserError(
            "{} at byte {} of its index: sequence {} of {} tokens begins at byte {}, but those before it end "
            "at byte {}; write the corpus again, its sequences in order and without gaps",
            shard.name(), pointers_at_ + (first + static_cast<int64_t>(i)) * 8,
            first + static_cast<int64_t>(i), lengths[i], pointers[i], sum * width_);
      sum += lengths[i];
    }
  }
}

void TokenCorpus::read_llm_c(const ByteSource& shard, bool wide) {
  if (shard.size() < kLlmCHeader)
    throw UserError("{}: ends within its header of {} bytes", shard.name(), kLlmCHeader);
  const auto version = number_at<int32_t>(shard, 4);
  const int32_t wanted = wide ? 7 : 1;
  if (version != wanted)
    throw UserError("{} at byte 4: version {} is not known; version {} is", shard.name(), version, wanted);
  width_ = wide ? 4 : 2;
  tokens_ = number_at<uint32_t>(shard, 8);
  tokens_at_ = kLlmCHeader;
  if (tokens_ * width_ != shard.size() - kLlmCHeader)
    throw UserError("{} at byte 8: {} tokens of {} bytes are announced, but {} bytes follow the header",
                    shard.name(), tokens_, width_, shard.size() - kLlmCHeader);
}

void TokenCorpus::read_own(const ByteSource& shard) {
  if (shard.size() < kTokenHeader)
    throw UserError("{}: ends within its header of {} bytes", shard.name(), kTokenHeader);
  const auto version = number_at<uint32_t>(shard, 8);
  const auto width = number_at<uint32_t>(shard, 12);
  if (version != kTokenVersion && version != kMarkedTokenVersion)
    throw UserError("{} at byte 8: version {} is not known; versions {} and {} are", shard.name(), version,
                    kTokenVersion, kMarkedTokenVersion);
  marked_ = version == kMarkedTokenVersion;
  if (width != 2 && width != 4)
    throw UserError("{} at byte 12: tokens of {} bytes; 2 or 4 are known", shard.name(), width);
  width_ = static_cast<int>(width);
  const auto tokens = number_at<uint64_t>(shard, 16);
  const auto documents = number_at<uint64_t>(shard, 24);
  const auto left = static_cast<uint64_t>(shard.size() - kTokenHeader);
  const bool fits = tokens <= left / width && documents <= left / 8;
  const uint64_t padded = fits ? (tokens * width + 7) / 8 * 8 : 0;
  if (!fits || padded + documents * 8 != left)
    throw UserError("{} at byte 16: {} tokens of {} bytes and {} documents do not fill its {} bytes",
                    shard.name(), tokens, width, documents, shard.size());
  tokens_ = static_cast<int64_t>(tokens);
  documents_ = static_cast<int64_t>(documents);
  tokens_at_ = kTokenHeader;
  if (marked_) {
    cut_ = number_at<int64_t>(shard, 32);
    dropped_ = number_at<int64_t>(shard, 40);
  }
  ends_at_ = tokens_at_ + static_cast<int64_t>(padded);
}

void TokenCorpus::read_ends(const ByteSource& shard, int64_t first, std::vector<int64_t>& ends) const {
  if (ends.empty()) return;
  if (ends_at_ > 0) return numbers_at(shard, ends_at_ + first * 8, std::span(ends));
  // Entry d + 1 is the sequence after document d; its pointer is where the document ends.
  numbers_at(shard, sequence_at_ + (first + 1) * 8, std::span(ends));
  int64_t least = sequences_, most = 0;
  for (const int64_t sequence : ends) {
    if (sequence < 0 || sequence > sequences_)
      throw UserError("{} at byte {} of its index: a document ends at sequence {} of {}", shard.name(),
                      sequence_at_ + (first + 1) * 8, sequence, sequences_);
    if (sequence == sequences_) continue;
    least = std::min(least, sequence);
    most = std::max(most, sequence + 1);
  }
  std::vector<int64_t> pointers(static_cast<size_t>(std::max<int64_t>(most - least, 0)));
  numbers_at(shard, pointers_at_ + least * 8, std::span(pointers));
  for (int64_t& end : ends)
    end = end == sequences_ ? tokens_ : pointers[static_cast<size_t>(end - least)] / width_;
}

void TokenCorpus::for_each_document(
    const ByteSource& shard,
    const std::function<void(int64_t document, int64_t begin, int64_t end)>& call) const {
  // Pieces are small because a lying table could make each of them ask for all pointers.
  constexpr int64_t kDocuments = 4096;
  check_megatron_sequences(shard);
  if (sequence_at_ > 0 && number_at<int64_t>(shard, sequence_at_) != 0)
    throw UserError("{} at byte {} of its index: the first document does not begin with sequence 0",
                    shard.name(), sequence_at_);
  std::vector<int64_t> ends;
  int64_t begin = 0;
  for (int64_t first = 0; first < documents_; first += kDocuments) {
    ends.resize(static_cast<size_t>(std::min(kDocuments, documents_ - first)));
    read_ends(shard, first, ends);
    for (size_t i = 0; i < ends.size(); ++i) {
      if (ends[i] < begin || ends[i] > tokens_)
        throw UserError("{}: document {} ends at token {}, but begins at token {} of {}", shard.name(),
                        first + static_cast<int64_t>(i), ends[i], begin, tokens_);
      call(first + static_cast<int64_t>(i), begin, ends[i]);
      begin = ends[i];
    }
  }
  if (documents_ > 0 && begin != tokens_)
    throw UserError("{}: the last document ends at token {} of {}", shard.name(), begin, tokens_);
}

void TokenCorpus::decode(const char* bytes, int64_t count, int32_t* out) const {
  if (marked_) {
    if (width_ == 2)
      widen<uint16_t>(bytes, count, out);
    else
      std::memcpy(out, bytes, static_cast<size_t>(count) * 4);
    const int32_t mask = width_ == 2 ? 0x7fff : 0x7fffffff;
    for (int64_t i = 0; i < count; ++i) out[i] &= mask;
    return;
  }
  switch (width_) {
    case 1: return signed_ ? widen<int8_t>(bytes, count, out) : widen<uint8_t>(bytes, count, out);
    case 2: return signed_ ? widen<int16_t>(bytes, count, out) : widen<uint16_t>(bytes, count, out);
    case 4: return signed_ ? widen<int32_t>(bytes, count, out) : widen<uint32_t>(bytes, count, out);
    default: return widen<int64_t>(bytes, count, out);
  }
}

void TokenCorpus::decode_targets(const char* bytes, int64_t count, int32_t ignored, int32_t* out) const {
  decode(bytes, count, out);
  if (!marked_) return;
  // Little-endian: the highest bit is in the last byte.
  for (int64_t i = 0; i < count; ++i)
    if ((static_cast<unsigned char>(bytes[(i + 1) * width_ - 1]) & 0x80) != 0) out[i] = ignored;
}

std::string TokenCorpus::place(const ByteSource& shard, int64_t offset) const {
  const int64_t before = sequence_at_ > 0 ? tokens_at_ : 0;
  return fmt::format("{} at byte {}", shard.name(), offset - before);
}

}  // namespace lockstep
