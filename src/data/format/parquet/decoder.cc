#include "data/format/parquet/decoder.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "data/format/parquet/row_decoder.h"
#include "data/format/parquet/row_places.h"
#include "data/format/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

// A page among the bytes that are fetched.
struct FetchedPage {
  size_t span = 0;
  size_t offset = 0;
  size_t bytes = 0;
};

// What spans() found out for the decode() that follows on the same thread: the cache may have changed by
// then.
struct Plan {
  uint64_t file = 0;
  int64_t first = 0;
  int64_t count = 0;
  std::vector<PieceUse> uses = {};  // by key: a dictionary, where one is needed, before the pages that use it
  std::vector<FetchedPage> pages = {};  // of those that are not in memory, one after the other
  std::vector<GranuleSpan> spans = {};

  void fetch(const PageSpan& page) {
    const bool joins = !spans.empty() && spans.back().offset + spans.back().bytes == page.offset;
    if (!joins) spans.push_back({page.offset, 0, first});
    pages.push_back(
        {spans.size() - 1, static_cast<size_t>(spans.back().bytes), static_cast<size_t>(page.bytes)});
    spans.back().bytes += page.bytes;
  }
  const PieceUse& use(const PieceKey& key) const {
    return *std::lower_bound(uses.begin(), uses.end(), key,
                             [](const PieceUse& use, const PieceKey& wanted) { return use.key < wanted; });
  }
};
thread_local Plan last_plan;

class ParquetDecoder : public ShardDecoder {
 public:
  ParquetDecoder(const ByteSource& file, const ShardIndex& index, FileLayout layout,
                 std::shared_ptr<PieceCache> cache)
      : ShardDecoder(file, index),
        layout_(std::move(layout)),
        cache_(std::move(cache)),
        places_(layout_.metadata.groups, layout_.pages.bad),
        rows_(file, id_, layout_, *cache_) {}

  std::vector<GranuleSpan> spans(int64_t first, int64_t count) const override {
    last_plan = plan(first, count);
    return last_plan.spans;
  }

  void decode(std::span<const std::string_view> fetched, int64_t first, int64_t count,
              ColumnBlock& block) const override {
    Plan plan = std::move(last_plan);
    last_plan = {};
    std::vector<std::string> own;
    std::vector<std::string_view> views(fetched.begin(), fetched.end());
    if (plan.file != id_ || plan.first != first || plan.count != count ||
        plan.spans.size() != fetched.size()) {
      plan = this->plan(first, count);
      views.clear();
      own.reserve(plan.spans.size());
      for (const GranuleSpan& span : plan.spans) {
        own.emplace_back(static_cast<size_t>(span.bytes), '\0');
        bytes().read(span.offset, own.back());
        views.emplace_back(own.back());
      }
    }
    make_pieces(views, plan);
    for (BlockColumn& column : block.columns)
      std::visit([&](auto& values) { values.reserve(values.size() + static_cast<size_t>(count)); },
                 column.values);
    places_.for_each_part(first, count, [&](const Part& part) {
      for (size_t column = 0; column < layout_.wanted.size(); ++column)
        append_part(part, column, plan, block);
    });
    cache_->used(plan.uses);
    if (has_text(block))
      for (PieceUse& use : plan.uses) block.keep.push_back(std::move(use.piece));
    block.records += count;
  }

  bool encodes_rows() const override { return true; }

  bool decode_rows(const RowEncoding& encoding, int64_t first, int64_t count, std::span<const uint32_t> only,
                   const Fetch& fetch, std::byte* rows) const override {
    bool all = true;
    size_t next = 0;  // of those that are named
    int64_t before = 0;
    std::vector<uint32_t> named;
    places_.for_each_part(first, count, [&](const Part& part) {
      named.clear();
      for (; next < only.size() && only[next] < before + part.count; ++next)
        named.push_back(only[next] - static_cast<uint32_t>(before));
      before += part.count;
      const size_t wanted = only.empty() ? static_cast<size_t>(part.count) : named.size();
      if (!all || wanted == 0) return;
      all = rows_.decode(encoding, part, only.empty() ? nullptr : named.data(), wanted, fetch, rows);
      rows += wanted * encoding.place_columns().size() * kPlaceBytes;
    });
    return all;
  }

  // Of the column with the longest pages, about. Lists are unpacked by row groups, which may be of any
  // length; they do not count.
  int64_t unpacked_together() const override {
    int64_t most = 0;
    for (const auto& group : layout_.pages.groups)
      for (const size_t leaf : layout_.wanted)
        if (const int64_t pages = group[leaf].pieces(); pages > 0 && !layout_.metadata.leaves[leaf].list())
          most = std::max(most, group[leaf].firsts.back() / pages);
    return most;
  }

  // A granule is a row group; rows of it that are left out only make the bounds wider than need be.
  std::optional<ColumnBounds> bounds(int64_t granule, size_t column) const override {
    return layout_.metadata.bounds(static_cast<size_t>(granule), layout_.wanted[column]);
  }

  std::string describe(int64_t record) const override {
    const int64_t row = places_.row_of(record);
    return fmt::format("{} record {} (row group {})", bytes().name(), row, places_.group_of(row));
  }

 private:
  static bool has_text(const ColumnBlock& block) {
    return std::any_of(block.columns.begin(), block.columns.end(),
                       [](const BlockColumn& column) { return column.type() == ValueType::kBytes; });
  }

  PieceKey key_of(size_t group, size_t leaf, int64_t piece) const {
    return {id_, static_cast<int64_t>(group), static_cast<int64_t>(leaf), piece};
  }

  Plan plan(int64_t first, int64_t count) const {
    Plan plan{.file = id_, .first = first, .count = count};
    std::vector<PieceUse> pages = pages_for(first, count);
    cache_->find(pages);
    for (size_t at = 0; at < pages.size();) {
      size_t end = at;
      bool some = false;
      for (; end < pages.size() && same_chunk(pages[at].key, pages[end].key); ++end)
        some = some || !pages[end].piece;
      PieceUse dictionary{.key = pages[at].key};
      dictionary.key.piece = kDictionary;
      if (some && chunk_of(dictionary.key).dictionary.bytes > 0) {
        cache_->find({&dictionary, 1});
        plan_use(std::move(dictionary), plan);
      }
      for (; at < end; ++at) plan_use(std::move(pages[at]), plan);
    }
    return plan;
  }

  static bool same_chunk(const PieceKey& a, const PieceKey& b) {
    return a.group == b.group && a.leaf == b.leaf;
  }
  const ChunkPages& chunk_of(const PieceKey& key) const {
    return layout_.pages.groups[static_cast<size_t>(key.group)][static_cast<size_t>(key.leaf)];
  }
  std::vector<PageSpan> spans_of(const PieceKey& key) const {
    return parquet::spans_of(layout_, static_cast<size_t>(key.group), static_cast<size_t>(key.leaf),
                             key.piece);
  }

  // The pieces that hold rows of these, each once, with the rows that are wanted of it.
  std::vector<PieceUse> pages_for(int64_t first, int64_t count) const {
    std::vector<PieceUse> uses;
    places_.for_each_part(first, count, [&](const Part& part) {
      for (const size_t leaf : layout_.wanted)
        for_each_piece(layout_.pages.groups[part.group][leaf], part.first, part.count,
                       [&](int64_t piece, int64_t, int64_t rows) {
                         uses.push_back({key_of(part.group, leaf, piece), rows});
                       });
    });
    std::sort(uses.begin(), uses.end(), [](const PieceUse& a, const PieceUse& b) { return a.key < b.key; });
    size_t kept = 0;
    for (size_t i = 0; i < uses.size(); ++i) {
      if (kept > 0 && uses[kept - 1].key == uses[i].key)
        uses[kept - 1].rows += uses[i].rows;
      else
        uses[kept++] = uses[i];
    }
    uses.resize(kept);
    return uses;
  }

  void plan_use(PieceUse use, Plan& plan) const {
    if (!use.piece)
      for (const PageSpan& span : spans_of(use.key)) plan.fetch(span);
    plan.uses.push_back(std::move(use));
  }

  void make_pieces(const std::vector<std::string_view>& views, Plan& plan) const {
    size_t next = 0;
    const PieceUse* dictionary = nullptr;
    for (PieceUse& use : plan.uses) {
      if (dictionary != nullptr && !same_chunk(dictionary->key, use.key)) dictionary = nullptr;
      if (use.key.piece == kDictionary) dictionary = &use;
      if (use.piece) continue;
      std::vector<std::string_view> pages;
      for (size_t left = spans_of(use.key).size(); left > 0; --left, ++next) {
        const FetchedPage& page = plan.pages[next];
        pages.push_back(views[page.span].substr(page.offset, page.bytes));
      }
      const auto make = [&] {
        return decode_piece(
            bytes(), layout_, static_cast<size_t>(use.key.group), static_cast<size_t>(use.key.leaf),
            use.key.piece, pages,
            dictionary == nullptr || dictionary == &use ? nullptr : dictionary->piece->dictionary);
      };
      // What is used up at once is not worth a place.
      const bool done = use.key.piece != kDictionary && use.rows >= rows_of(use.key);
      use.piece = done ? std::make_shared<const Piece>(make()) : cache_->get(use.key, make);
    }
  }

  int64_t rows_of(const PieceKey& key) const {
    const std::vector<int64_t>& firsts = chunk_of(key).firsts;
    const auto at = static_cast<size_t>(key.piece);
    return firsts[at + 1] - firsts[at];
  }

  void append_part(const Part& part, size_t column, const Plan& plan, ColumnBlock& block) const {
    const size_t leaf = layout_.wanted[column];
    for_each_piece(
        layout_.pages.groups[part.group][leaf], part.first, part.count,
        [&](int64_t number, int64_t first, int64_t count) {
          const Piece& piece = *plan.use(key_of(part.group, leaf, number)).piece;
          const auto bad = std::lower_bound(piece.bad_rows.begin(), piece.bad_rows.end(), first);
          if (bad != piece.bad_rows.end() && *bad < first + count)
            throw UserError(
                "{} record {}: column '{}' is not valid UTF-8 (page at byte {})", bytes().name(),
                places_.first_row(part.group) +
                    layout_.pages.groups[part.group][leaf].firsts[static_cast<size_t>(number)] + *bad,
                layout_.metadata.leaves[leaf].name, spans_of(key_of(part.group, leaf, number))[0].offset);
          append_rows(piece, first, count, block.columns[column]);
        });
  }

  static uint64_t next_id() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
  }

  const uint64_t id_ = next_id();
  FileLayout layout_;
  std::shared_ptr<PieceCache> cache_;
  RowPlaces places_;
  RowDecoder rows_;
};

}  // namespace

std::vector<PageSpan> spans_of(const FileLayout& layout, size_t group, size_t leaf, int64_t piece) {
  const ChunkPages& chunk = layout.pages.groups[group][leaf];
  if (piece == kDictionary) return {chunk.dictionary};
  if (layout.metadata.leaves[leaf].list()) return chunk.pages;
  return {chunk.pages[static_cast<size_t>(piece)]};
}

void raise_damage(const ByteSource& file, const FileLayout& layout, size_t group, size_t leaf, int64_t piece,
                  const std::exception& damage) {
  const std::vector<PageSpan> spans = spans_of(layout, group, leaf, piece);
  throw UserError("{} at byte {}: column '{}' of row group {}: a page cannot be read: {}", file.name(),
                  spans.empty() ? layout.metadata.groups[group].columns[leaf].offset : spans[0].offset,
                  layout.metadata.leaves[leaf].name, group, damage.what());
}

Piece decode_piece(const ByteSource& file, const FileLayout& layout, size_t group, size_t leaf, int64_t piece,
                   const std::vector<std::string_view>& pages, std::shared_ptr<const Dictionary> dictionary) {
  const Leaf& column = layout.metadata.leaves[leaf];
  const ChunkPages& chunk = layout.pages.groups[group][leaf];
  const Codec compression = *layout.metadata.groups[group].columns[leaf].compression;
  try {
    if (piece == kDictionary) {
      Piece alone;
      alone.dictionary = decode_dictionary(pages[0], column, compression, layout.limits);
      return alone;
    }
    const auto at = static_cast<size_t>(piece);
    const int64_t rows = chunk.firsts[at + 1] - chunk.firsts[at];
    return column.list()
               ? decode_list(pages, column, compression, std::move(dictionary), rows, layout.limits)
               : decode_page(pages[0], column, compression, std::move(dictionary), rows, layout.limits);
  } catch (const Damaged& damage) {
    raise_damage(file, layout, group, leaf, piece, damage);
  }
}

std::unique_ptr<ShardDecoder> make_decoder(const ByteSource& file, const ShardIndex& index, FileLayout layout,
                                           std::shared_ptr<PieceCache> cache) {
  return std::make_unique<ParquetDecoder>(file, index, std::move(layout), std::move(cache));
}

}  // namespace lockstep::parquet
