#include "data/tokens/tokens_format.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>

#include "base/error.h"
#include "data/bytes/byte_source.h"
#include "data/bytes/files.h"
#include "data/source/source.h"
#include "data/tokens/token_corpus.h"
#include "data/tokens/token_rows.h"

namespace lockstep {
namespace {

constexpr int64_t kPlannedRows = 512;           // tokens of a packing window, in rows
constexpr int64_t kPlannedDocuments = 1 << 16;  // or so many documents, if these are short
constexpr int64_t kGranule = 1 << 20;           // bytes of tokens between two marks in the documents' table
constexpr int64_t kPiece = 1 << 20;

struct TokenSettings {
  int64_t seq = 0, vocab = 0;
  bool best_fit = false, separate = false, marked = false;
};

int64_t whole_number(const std::string& key, const std::string& text) {
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < 1 || value > (int64_t{1} << 30))
    throw UserError("tokens: {} is '{}'; write a whole number from 1 to 2^30", key, text);
  return value;
}

bool chosen(const std::string& key, const std::string& text, std::string_view no, std::string_view yes) {
  if (text != no && text != yes) throw UserError("tokens: {} is '{}'; write {} or {}", key, text, no, yes);
  return text == yes;
}

TokenSettings settings_of(const FormatOptions& options) {
  TokenSettings settings;
  for (const auto& [key, value] : options.settings) {
    if (key == "seq")
      settings.seq = whole_number(key, value);
    else if (key == "vocab")
      settings.vocab = whole_number(key, value);
    else if (key == "pack")
      settings.best_fit = chosen(key, value, "split", "best_fit");
    else if (key == "documents")
      settings.separate = chosen(key, value, "joined", "separate");
    else if (key == "marked")
      settings.marked = chosen(key, value, "false", "true");
    else
      throw UserError("tokens has no setting '{}'; it has seq, vocab, pack, documents and marked", key);
  }
  if (settings.seq == 0 || settings.vocab == 0) throw UserError("tokens needs the settings seq and vocab");
  if (!options.columns.empty()) throw UserError("tokens has columns of its own; ask for none by name");
  return settings;
}

TokenCorpus corpus_of(const ByteSource& shard, const TokenSettings& settings) {
  TokenCorpus corpus(shard);
  if ((settings.best_fit || settings.separate) && corpus.documents() == 0)
    throw UserError(
        "{}: the shard does not say where its documents end; write pack: split and documents: joined",
        shard.name());
  if (corpus.marked() && !settings.best_fit && !settings.separate && !settings.marked)
    throw UserError("{}: some tokens of the shard do not count in the loss; write documents: separate",
                    shard.name());
  return corpus;
}

// Names the first of some tokens at an offset of the shard that is not in the vocabulary.
[[noreturn]] void refuse_token(const TokenCorpus& corpus, const ByteSource& shard,
                               std::span<const int32_t> tokens, int64_t offset, int64_t vocab) {
  const auto bad =
      std::find_if(tokens.begin(), tokens.end(), [&](int32_t token) { return token < 0 || token >= vocab; });
  throw UserError("{}: token {} is not in the vocabulary of {}",
                  corpus.place(shard, offset + (bad - tokens.begin()) * corpus.width()),
                  *bad < 0 ? "below 0 or above 2^31" : fmt::format("{}", *bad), vocab);
}

// Documents [first, end) of a shard and where they lie.
struct DocumentRange {
  int64_t first = 0, end = 0;
};

// What `extra` of an index holds: for every granule its first document, and at the end the number of them.
class DocumentMarks {
 public:
  explicit DocumentMarks(std::string_view text) : text_(text) {}
  DocumentRange of(int64_t granule) const { return {mark(granule), mark(granule + 1)}; }
  static void add(std::string& text, int64_t document) {
    text.append(reinterpret_cast<const char*>(&document), sizeof document);
  }

 private:
  int64_t mark(int64_t index) const {
    LOCKSTEP_CHECK((static_cast<size_t>(index) + 1) * 8 <= text_.size(), "mark {} of documents", index);
    int64_t value = 0;
    std::memcpy(&value, text_.data() + index * 8, 8);
    return value;
  }
  std::string_view text_;
};

// The rows of one packing window.
PackedRows plan_window(const TokenCorpus& corpus, const ByteSource& shard, const ShardIndex& index,
                       DocumentRange documents, int64_t seq) {
  // The end of the one before is where the first begins.
  const int64_t before = documents.first > 0 ? 1 : 0;
  std::vector<int64_t> ends(static_cast<size_t>(documents.end - documents.first + before));
  corpus.read_ends(shard, documents.first - before, ends);
  std::vector<TokenPiece> pieces;
  int64_t begin = before > 0 ? ends[0] : 0;
  for (size_t i = static_cast<size_t>(before); i < ends.size(); ++i) {
    if (index.bad.empty() || !index.is_bad(corpus.offset_of(begin)))
      cut_document(begin, ends[i], seq, pieces);
    begin = ends[i];
  }
  return pack_best_fit(pieces, seq);
}

// Row after row of columns.
struct RowColumns {
  std::span<int32_t> tokens, targets, documents, positions;  // of one row; the last two may be empty

  // The tokens of a piece, and the same as targets, to positions from `at` on; the piece is number
  // `document` of the row.
  void put(const int32_t* from, const int32_t* as_targets, int64_t at, int64_t count,
           int32_t document) const {
    std::copy_n(from, count, tokens.begin() + at);
    std::copy_n(as_targets + 1, count, targets.begin() + at);
    if (documents.empty()) return;
    std::fill_n(documents.begin() + at, count, document);
    std::iota(positions.begin() + at, positions.begin() + at + count, 0);
  }
  // No tokens from `at` on: a document of its own that nothing is learnt from.
  void pad(int64_t at, int32_t document) const {
    for (auto t = static_cast<size_t>(at); t < tokens.size(); ++t) {
      tokens[t] = 0;
      targets[t] = kIgnoredLabel;
      if (documents.empty()) continue;
      documents[t] = document;
      positions[t] = static_cast<int32_t>(t - static_cast<size_t>(at));
    }
  }
};

class TokensDecoder : public ShardDecoder {
 public:
  TokensDecoder(const ByteSource& shard, const ShardIndex& index, const TokenSettings& settings)
      : ShardDecoder(shard, index), settings_(settings), corpus_(corpus_of(shard, settings)) {
    for (const BadRecord& bad : index.bad)
      bad_windows_.push_back((bad.offset - corpus_.offset_of(0)) / corpus_.width() / settings.seq);
  }

  std::string describe(int64_t record) const override {
    return corpus_.place(bytes(), spans(record, 1)[0].offset);
  }

 protected:
  // What must be read to decode records.
  virtual std::vector<GranuleSpan> spans(int64_t first, int64_t count) const = 0;

  RowColumns add_row(ColumnBlock& block) const {
    const auto row = [&](size_t column) -> std::span<int32_t> {
      if (column >= block.columns.size()) return {};
      auto& values = block.columns[column].as<int32_t>();
      values.resize(values.size() + static_cast<size_t>(settings_.seq));
      return std::span(values).last(static_cast<size_t>(settings_.seq));
    };
    ++block.records;
    return {row(0), row(1), row(2), row(3)};
  }

  // Tokens at an offset of the shard, widened and checked.
  std::span<const int32_t> tokens_of(std::string_view raw, int64_t offset) const {
    thread_local std::vector<int32_t> tokens;
    const int64_t count = static_cast<int64_t>(raw.size()) / corpus_.width();
    tokens.resize(static_cast<size_t>(count));
    corpus_.decode(raw.data(), count, tokens.data());
    uint32_t most = 0;
    for (const int32_t token : tokens) most = std::max(most, static_cast<uint32_t>(token));
    if (most >= settings_.vocab) refuse_token(corpus_, bytes(), tokens, offset, settings_.vocab);
    return tokens;
  }

  // The same as targets; the tokens themselves unless the shard is marked.
  std::span<const int32_t> targets_of(std::string_view raw, std::span<const int32_t> tokens) const {
    if (!corpus_.marked()) return tokens;
    thread_local std::vector<int32_t> targets;
    targets.resize(tokens.size());
    corpus_.decode_targets(raw.data(), std::ssize(tokens), kIgnoredLabel, targets.data());
    return targets;
  }

  // The same as numbers of `width` bytes.
  void copy_tokens(std::string_view raw, int64_t offset, int width, std::byte* out) const {
    const size_t count = raw.size() / static_cast<size_t>(corpus_.width());
    if (width == 2 && corpus_.width() == 2 && !corpus_.is_signed()) {
      std::memcpy(out, raw.data(), raw.size());
      const auto* tokens = reinterpret_cast<const uint16_t*>(out);
      uint16_t most = 0;
      for (size_t t = 0; t < count; ++t) most = std::max(most, tokens[t]);
      if (most < settings_.vocab) return;
    }
    const std::span<const int32_t> tokens = tokens_of(raw, offset);
    if (width == 4)
      std::memcpy(out, tokens.data(), tokens.size_bytes());
    else
      std::copy(tokens.begin(), tokens.end(), reinterpret_cast<uint16_t*>(out));
  }

  const TokenSettings& settings() const { return settings_; }
  const TokenCorpus& corpus() const { return corpus_; }
  // The window of a record when bad ones are left out.
  int64_t window_of(int64_t record) const {
    // Of bad window b, the i-th of them, the records before it number b - i.
    int64_t below = 0, above = static_cast<int64_t>(bad_windows_.size());
    while (below < above) {
      const int64_t middle = (below + above) / 2;
      if (bad_windows_[static_cast<size_t>(middle)] - middle <= record)
        below = middle + 1;
      else
        above = middle;
    }
    return record + below;
  }

 private:
  TokenSettings settings_;
  TokenCorpus corpus_;
  std::vector<int64_t> bad_windows_;
};

// Windows of the tokens as they lie.
class SplitDecoder : public TokensDecoder {
 public:
  using TokensDecoder::TokensDecoder;

  std::vector<GranuleSpan> spans(int64_t first, int64_t count) const override {
    const int64_t begin = window_of(first) * settings().seq;
    const int64_t tokens = (window_of(first + count - 1) + 1) * settings().seq + 1 - begin;
    return {{corpus().offset_of(begin), tokens * corpus().width(), first}};
  }

  void decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const override {
    const std::vector<std::string_view> fetched = fetch.all(spans(first, count));
    const int64_t seq = settings().seq, width = corpus().width();
    const int64_t origin = window_of(first) * seq;
    std::vector<int64_t> ends;
    if (settings().separate) ends = ends_between(origin, (window_of(first + count - 1) + 1) * seq);
    size_t next_end = 0;
    for (int64_t record = first; record < first + count; ++record) {
      const int64_t begin = window_of(record) * seq;
      const auto raw = fetched[0].substr(static_cast<size_t>((begin - origin) * width),
                                         static_cast<size_t>((seq + 1) * width));
      const RowColumns row = add_row(block);
      const auto tokens = tokens_of(raw, corpus().offset_of(begin));
      const auto targets = targets_of(raw, tokens);
      int32_t document = 0;
      int64_t at = 0;
      if (settings().separate) {
        while (next_end < ends.size() && ends[next_end] <= begin) ++next_end;
        for (; next_end < ends.size() && ends[next_end] < begin + seq; ++next_end) {
          const int64_t end = ends[next_end] - begin;
          if (end == at) continue;
          row.put(tokens.data() + at, targets.data() + at, at, end - at, document++);
          row.targets[static_cast<size_t>(end) - 1] = kIgnoredLabel;
          at = end;
        }
      }
      row.put(tokens.data() + at, targets.data() + at, at, seq - at, document);
      const bool cut = next_end < ends.size() && ends[next_end] == begin + seq;
      if (cut) row.targets.back() = kIgnoredLabel;
    }
  }

  GranuleSpan compact_span(int64_t record) const override {
    const bool same = corpus().width() == width_of_tokens(settings().vocab);
    // Signed numbers of 2 bytes may be below 0, which looks like a large number in a row.
    if (!same || (corpus().width() == 2 && corpus().is_signed())) return {};
    return {corpus().offset_of(window_of(record) * settings().seq), (settings().seq + 1) * corpus().width(),
            record};
  }

  void decode_compact(Fetch& fetch, int64_t first, int64_t count, std::byte* rows) const override {
    const std::vector<std::string_view> fetched = fetch.all(spans(first, count));
    const int64_t seq = settings().seq, width = corpus().width();
    const TokenRows kind(seq, width_of_tokens(settings().vocab), settings().vocab);
    const int64_t origin = window_of(first) * seq;
    for (int64_t record = first; record < first + count; ++record, rows += kind.row_bytes()) {
      const int64_t begin = window_of(record) * seq;
      const auto raw = fetched[0].substr(static_cast<size_t>((begin - origin) * width),
                                         static_cast<size_t>((seq + 1) * width));
      copy_tokens(raw, corpus().offset_of(begin), kind.width(), rows);
    }
  }

 private:
  // The ends of documents after token `begin` and up to `end`, of granules that these lie in.
  std::vector<int64_t> ends_between(int64_t begin, int64_t end) const {
    const DocumentMarks marks(index().extra);
    const int64_t tokens = index().granule * settings().seq;
    const int64_t last = std::min(end / tokens, index().granules() - 1);
    std::vector<int64_t> ends(
        static_cast<size_t>(marks.of(last).end - marks.of(std::min(begin / tokens, last)).first));
    corpus().read_ends(bytes(), marks.of(std::min(begin / tokens, last)).first, ends);
    return ends;
  }
};

// Rows of whole documents.
class PackedDecoder : public TokensDecoder {
 public:
  PackedDecoder(const ByteSource& shard, const ShardIndex& index, const TokenSettings& settings)
      : TokensDecoder(shard, index, settings), identity_(next_identity()) {}

  std::vector<GranuleSpan> spans(int64_t first, int64_t count) const override {
    std::vector<GranuleSpan> spans;
    for (int64_t record = first; record < first + count; ++record)
      for (const TokenPiece& piece : row_of(record))
        spans.push_back({corpus().offset_of(piece.first), (piece.positions + 1) * corpus().width(), record});
    return spans;
  }

  void decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const override {
    const std::vector<std::string_view> fetched = fetch.all(spans(first, count));
    size_t next = 0;
    for (int64_t record = first; record < first + count; ++record) {
      const RowColumns row = add_row(block);
      int64_t at = 0;
      int32_t document = 0;
      for (const TokenPiece& piece : row_of(record)) {
        const std::string_view raw = fetched[next++];
        const auto tokens = tokens_of(raw, corpus().offset_of(piece.first));
        row.put(tokens.data(), targets_of(raw, tokens).data(), at, piece.positions, document++);
        at += piece.positions;
      }
      row.pad(at, document);
    }
  }

 private:
  static int64_t next_identity() {
    static std::atomic<int64_t> next = 0;
    return ++next;
  }

  // Rows of a window are mostly asked for together: this thread's last plan is kept.
  const std::vector<TokenPiece>& row_of(int64_t record) const {
    struct Kept {
      int64_t identity = 0, granule = -1;
      PackedRows rows;
    };
    thread_local Kept kept;
    const int64_t granule = index().granule_of(record);
    if (kept.identity != identity_ || kept.granule != granule) {
      kept.identity = 0;  // unless all goes well
      kept.rows =
          plan_window(corpus(), bytes(), index(), DocumentMarks(index().extra).of(granule), settings().seq);
      kept.identity = identity_;
      kept.granule = granule;
    }
    return kept.rows.at(static_cast<size_t>(record - index().first_of(granule)));
  }

  int64_t identity_;
};

class TokensFormat : public Format {
 public:
  explicit TokensFormat(const FormatOptions& options)
      : Format(options),
        settings_(settings_of(options)),
        rows_(settings_.seq, width_of_tokens(settings_.vocab), settings_.vocab) {}

  std::string_view name() const override { return "tokens"; }
  int version() const override { return 2; }

  std::vector<BlockField> fields(const ByteSource&) const override {
    std::vector<BlockField> fields{{"tokens", ValueType::kI32, settings_.seq},
                                   {"targets", ValueType::kI32, settings_.seq}};
    if (settings_.separate) {
      fields.push_back({"documents", ValueType::kI32, settings_.seq});
      fields.push_back({"positions", ValueType::kI32, settings_.seq});
    }
    return fields;
  }

  // Rows of several documents have targets that are not their next tokens.
  const CompactRows* compact_rows() const override {
    return settings_.best_fit || settings_.separate || settings_.marked ? nullptr : &rows_;
  }

  ShardIndex index(const ByteSource& shard, const Progress& progress) const override {
    const TokenCorpus corpus = corpus_of(shard, settings_);
    ShardIndex index = settings_.best_fit ? ShardIndex{} : split(shard, corpus);
    if (options().bad == BadRecords::kSkip)
      index.bad = find_bad(shard, corpus, progress);
    else
      require_known(shard, corpus, progress);
    if (settings_.best_fit)
      pack(shard, corpus, index);
    else
      index.records -= static_cast<int64_t>(index.bad.size());
    return index;
  }

  std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const override {
    if (settings_.best_fit) return std::make_unique<PackedDecoder>(shard, index, settings_);
    return std::make_unique<SplitDecoder>(shard, index, settings_);
  }

 private:
  ShardIndex split(const ByteSource& shard, const TokenCorpus& corpus) const {
    ShardIndex index;
    index.records = std::max<int64_t>(corpus.tokens() - 1, 0) / settings_.seq;
    const int64_t fitting = std::max<int64_t>(kGranule / (settings_.seq * corpus.width()), 1);
    index.granule = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(fitting)));
    const int64_t tokens = index.granule * settings_.seq;
    for (int64_t first = 0; first < index.records; first += index.granule)
      index.offsets.push_back(static_cast<uint64_t>(corpus.offset_of(first * settings_.seq)));
    index.offsets.push_back(static_cast<uint64_t>(corpus.offset_of(corpus.tokens())));
    // A granule's first document is the first that ends after the granule's first token.
    int64_t granule = 0;
    corpus.for_each_document(shard, [&](int64_t document, int64_t, int64_t end) {
      for (; granule < index.granules() && granule * tokens < end; ++granule)
        DocumentMarks::add(index.extra, document);
    });
    if (corpus.documents() > 0)
      for (; granule <= index.granules(); ++granule) DocumentMarks::add(index.extra, corpus.documents());
    return index;
  }

  void pack(const ByteSource& shard, const TokenCorpus& corpus, ShardIndex& index) const {
    index.granule = 0;
    index.firsts = {0};
    DocumentRange window;
    int64_t begins = 0;
    const auto close = [&](int64_t end_document, int64_t end) {
      window.end = end_document;
      if (window.end == window.first) return;
      index.offsets.push_back(static_cast<uint64_t>(corpus.offset_of(begins)));
      DocumentMarks::add(index.extra, window.first);
      index.records += static_cast<int64_t>(plan_window(corpus, shard, index, window, settings_.seq).size());
      index.firsts.push_back(index.records);
      window.first = end_document;
      begins = end;
    };
    int64_t last = 0;
    corpus.for_each_document(shard, [&](int64_t document, int64_t, int64_t end) {
      last = end;
      if (end - begins >= kPlannedRows * settings_.seq || document + 1 - window.first >= kPlannedDocuments)
        close(document + 1, end);
    });
    close(corpus.documents(), last);
    index.offsets.push_back(static_cast<uint64_t>(corpus.offset_of(corpus.tokens())));
    DocumentMarks::add(index.extra, corpus.documents());
  }

  // Throws UserError for the first token of a row that is not in the vocabulary: before the first step, not
  // at the one that meets it. Whoever indexes reads all bytes anyway, for their hash.
  void require_known(const ByteSource& shard, const TokenCorpus& corpus, const Progress& progress) const {
    const int64_t rows = std::max<int64_t>(corpus.tokens() - 1, 0) / settings_.seq;
    const int64_t end = settings_.best_fit ? corpus.tokens() : rows == 0 ? 0 : rows * settings_.seq + 1;
    for_each_piece(shard, corpus, 0, end, [&](std::span<const int32_t> tokens, int64_t offset) {
      uint32_t most = 0;
      for (const int32_t token : tokens) most = std::max(most, static_cast<uint32_t>(token));
      if (most >= settings_.vocab) refuse_token(corpus, shard, tokens, offset, settings_.vocab);
      progress(std::ssize(tokens) * corpus.width());
      return true;
    });
  }

  // Windows, or documents when these are packed, with a token that is not in the vocabulary.
  std::vector<BadRecord> find_bad(const ByteSource& shard, const TokenCorpus& corpus,
                                  const Progress& progress) const {
    std::vector<BadRecord> bad;
    if (settings_.best_fit) {
      corpus.for_each_document(shard, [&](int64_t, int64_t begin, int64_t end) {
        check_range(shard, corpus, begin, end, bad);
        progress((end - begin) * corpus.width());
      });
      return bad;
    }
    const int64_t records = std::max<int64_t>(corpus.tokens() - 1, 0) / settings_.seq;
    for (int64_t record = 0; record < records; ++record) {
      check_range(shard, corpus, record * settings_.seq, (record + 1) * settings_.seq + 1, bad);
      progress(settings_.seq * corpus.width());
    }
    return bad;
  }

  void check_range(const ByteSource& shard, const TokenCorpus& corpus, int64_t begin, int64_t end,
                   std::vector<BadRecord>& bad) const {
    for_each_piece(shard, corpus, begin, end, [&](std::span<const int32_t> tokens, int64_t) {
      const auto foreign = std::find_if(tokens.begin(), tokens.end(),
                                        [&](int32_t token) { return token < 0 || token >= settings_.vocab; });
      if (foreign == tokens.end()) return true;
      bad.push_back({corpus.offset_of(begin),
                     fmt::format("token {} is not in the vocabulary of {}", *foreign, settings_.vocab)});
      return false;
    });
  }

  // Calls take(tokens, offset of the first) for the tokens [begin, end), in order, until it gives false.
  template <typename Take>
  static void for_each_piece(const ByteSource& shard, const TokenCorpus& corpus, int64_t begin, int64_t end,
                             const Take& take) {
    std::string raw;
    std::vector<int32_t> tokens;
    for (int64_t at = begin; at < end; at += kPiece) {
      const int64_t count = std::min(kPiece, end - at);
      raw.resize(static_cast<size_t>(count * corpus.width()));
      tokens.resize(static_cast<size_t>(count));
      shard.read(corpus.offset_of(at), raw);
      corpus.decode(raw.data(), count, tokens.data());
      if (!take(std::span<const int32_t>(tokens), corpus.offset_of(at))) return;
    }
  }

  TokenSettings settings_;
  TokenRows rows_;
};

}  // namespace

std::unique_ptr<Format> make_tokens_format(const FormatOptions& options) {
  return std::make_unique<TokensFormat>(options);
}

std::vector<std::unique_ptr<ByteSource>> open_token_shards(const std::vector<std::string>& files) {
  std::set<std::string> paths;
  for (std::string path : expand_files(files)) {
    if (path.ends_with(".idx")) path.replace(path.size() - 4, 4, ".bin");
    paths.insert(std::move(path));
  }
  std::vector<std::unique_ptr<ByteSource>> shards;
  for (const std::string& path : paths) {
    const std::string index = path.ends_with(".bin") ? path.substr(0, path.size() - 4) + ".idx" : "";
    if (index.empty() || !std::filesystem::exists(index)) {
      shards.push_back(open_file(path));
      continue;
    }
    std::vector<std::unique_ptr<ByteSource>> parts;
    parts.push_back(open_file(index));
    parts.push_back(open_file(path));
    shards.push_back(join_bytes(path, std::move(parts)));
  }
  return shards;
}

}  // namespace lockstep
