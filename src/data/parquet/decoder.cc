#include "data/parquet/decoder.h"

#include <algorithm>

#include "base/error.h"
#include "data/parquet/page_table.h"
#include "data/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

// What decoding some rows takes: the pieces that hold them, and what must be read of the file for those that
// are not in memory.
struct Plan {
  // Of a page among the bytes that are read.
  struct PageBytesAt {
    size_t span = 0;
    size_t offset = 0;
    size_t bytes = 0;
  };

  std::vector<PieceUse> uses = {};  // by key: a dictionary, where one is needed, before the pages that use it
  std::vector<PageBytesAt> pages = {};  // of the pieces that are not in memory, one after the other
  std::vector<GranuleSpan> spans = {};  // neighbouring pages are read together

  void fetch(const PageSpan& page, int64_t first_record) {
    const bool joins = !spans.empty() && spans.back().offset + spans.back().bytes == page.offset;
    if (!joins) spans.push_back({page.offset, 0, first_record});
    pages.push_back(
        {spans.size() - 1, static_cast<size_t>(spans.back().bytes), static_cast<size_t>(page.bytes)});
    spans.back().bytes += page.bytes;
  }
  const Piece& piece(const PieceKey& key) const {
    return *std::lower_bound(uses.begin(), uses.end(), key, [](const PieceUse& use, const PieceKey& wanted) {
              return use.key < wanted;
            })->piece;
  }
};

class ParquetDecoder : public ShardDecoder {
 public:
  ParquetDecoder(const ByteSource& file, const ShardIndex& index, FileLayout layout,
                 std::shared_ptr<PieceCache> cache)
      : ShardDecoder(file, index),
        layout_(std::move(layout)),
        cache_(std::move(cache)),
        file_(cache_->add_file()),
        places_(layout_.metadata.groups, layout_.pages.bad) {}

  void decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const override {
    Plan plan = this->plan(first, count);
    make_pieces(fetch.all(plan.spans), plan);
    bool has_text = false;
    for (BlockColumn& column : block.columns) {
      has_text = has_text || column.type() == ValueType::kBytes;
      std::visit([&](auto& values) { values.reserve(values.size() + static_cast<size_t>(count)); },
                 column.values);
    }
    places_.for_each_part(first, count, [&](const Part& part) {
      for (size_t column = 0; column < layout_.wanted.size(); ++column)
        append_part(part, column, plan, block);
    });
    cache_->used(plan.uses);
    if (has_text)
      for (PieceUse& use : plan.uses) block.keep.push_back(std::move(use.piece));
    block.records += count;
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

  std::string describe(int64_t record) const override {
    const int64_t row = places_.row_of(record);
    return fmt::format("{} record {} (row group {})", bytes().name(), row, places_.group_of(row));
  }

 private:
  Plan plan(int64_t first, int64_t count) const {
    Plan plan;
    std::vector<PieceUse> pages = pages_for(first, count);
    cache_->find(pages);
    for (size_t at = 0; at < pages.size();) {
      size_t end = at;
      bool some_missing = false;
      for (; end < pages.size() && pages[at].key.same_chunk(pages[end].key); ++end)
        some_missing = some_missing || !pages[end].piece;
      PieceUse dictionary{.key = pages[at].key.dictionary()};
      if (some_missing && layout_.chunk_of(dictionary.key).dictionary.bytes > 0) {
        cache_->find({&dictionary, 1});
        plan_use(std::move(dictionary), first, plan);
      }
      for (; at < end; ++at) plan_use(std::move(pages[at]), first, plan);
    }
    return plan;
  }

  // The pieces that hold rows of these, each once, with the rows that are wanted of it.
  std::vector<PieceUse> pages_for(int64_t first, int64_t count) const {
    std::map<PieceKey, int64_t> rows_of;
    places_.for_each_part(first, count, [&](const Part& part) {
      for (const size_t leaf : layout_.wanted)
        for_each_piece(layout_.pages.groups[part.group][leaf], part.first, part.count,
                       [&](int64_t page, int64_t, int64_t rows) {
                         rows_of[{file_, part.group, leaf, page}] += rows;
                       });
    });
    std::vector<PieceUse> uses;
    for (const auto& [key, rows] : rows_of) uses.push_back({key, rows});
    return uses;
  }

  void plan_use(PieceUse use, int64_t first_record, Plan& plan) const {
    if (!use.piece)
      for (const PageSpan& span : layout_.spans_of(use.key)) plan.fetch(span, first_record);
    plan.uses.push_back(std::move(use));
  }

  void make_pieces(const std::vector<std::string_view>& fetched, Plan& plan) const {
    size_t next = 0;
    const PieceUse* dictionary = nullptr;  // of the column chunk that has its turn
    for (PieceUse& use : plan.uses) {
      if (dictionary != nullptr && !dictionary->key.same_chunk(use.key)) dictionary = nullptr;
      if (use.key.is_dictionary()) dictionary = &use;
      if (use.piece) continue;
      std::vector<std::string_view> pages;
      for (size_t left = layout_.spans_of(use.key).size(); left > 0; --left, ++next) {
        const Plan::PageBytesAt& page = plan.pages[next];
        pages.push_back(fetched[page.span].substr(page.offset, page.bytes));
      }
      const auto make = [&] {
        const bool has_dictionary = dictionary != nullptr && dictionary != &use;
        return decode_piece(bytes(), layout_, use.key, pages,
                            has_dictionary ? dictionary->piece->dictionary : nullptr);
      };
      // What is used up at once is not worth keeping.
      const bool done =
          !use.key.is_dictionary() && use.rows >= layout_.chunk_of(use.key).rows_of(*use.key.page);
      use.piece = done ? std::make_shared<const Piece>(make()) : cache_->get(use.key, make);
    }
  }

  void append_part(const Part& part, size_t column, const Plan& plan, ColumnBlock& block) const {
    const size_t leaf = layout_.wanted[column];
    const ChunkPages& chunk = layout_.pages.groups[part.group][leaf];
    for_each_piece(chunk, part.first, part.count, [&](int64_t page, int64_t first, int64_t count) {
      const PieceKey key{file_, part.group, leaf, page};
      const Piece& piece = plan.piece(key);
      const auto bad = std::lower_bound(piece.bad_rows.begin(), piece.bad_rows.end(), first);
      if (bad != piece.bad_rows.end() && *bad < first + count)
        throw UserError("{} record {}: column '{}' is not valid UTF-8 (page at byte {})", bytes().name(),
                        places_.first_row(part.group) + chunk.firsts[static_cast<size_t>(page)] + *bad,
                        layout_.metadata.leaves[leaf].name, layout_.spans_of(key)[0].offset);
      append_piece(bytes(), layout_, key, piece, first, count, block.columns[column]);
    });
  }

  FileLayout layout_;
  std::shared_ptr<PieceCache> cache_;
  uint64_t file_;  // the number that its pieces are kept under
  RowPlaces places_;
};

}  // namespace

std::vector<PageSpan> FileLayout::spans_of(const PieceKey& key) const {
  const ChunkPages& chunk = chunk_of(key);
  if (key.is_dictionary()) return {chunk.dictionary};
  if (metadata.leaves[key.leaf].list()) return chunk.pages;
  return {chunk.pages[static_cast<size_t>(*key.page)]};
}

namespace {

[[noreturn]] void raise_damage(const ByteSource& file, const FileLayout& layout, const PieceKey& key,
                               const Damaged& damage) {
  const std::vector<PageSpan> spans = layout.spans_of(key);
  const int64_t chunk = layout.metadata.groups[key.group].columns[key.leaf].offset;
  throw UserError("{} at byte {}: column '{}' of row group {}: a page cannot be read: {}", file.name(),
                  spans.empty() ? chunk : spans[0].offset, layout.metadata.leaves[key.leaf].name, key.group,
                  damage.what());
}

}  // namespace

Piece decode_piece(const ByteSource& file, const FileLayout& layout, const PieceKey& key,
                   const std::vector<std::string_view>& pages, std::shared_ptr<const Dictionary> dictionary) {
  const Leaf& column = layout.metadata.leaves[key.leaf];
  const ColumnChunk& stored = layout.metadata.groups[key.group].columns[key.leaf];
  try {
    if (key.is_dictionary()) {
      Piece alone;
      alone.dictionary = decode_dictionary(pages[0], column, *stored.compression, layout.limits);
      return alone;
    }
    const int64_t rows = layout.chunk_of(key).rows_of(*key.page);
    return column.list()
               ? decode_list(pages, column, *stored.compression, std::move(dictionary), rows, layout.limits)
               : decode_page(pages[0], column, *stored.compression, std::move(dictionary), rows,
                             layout.limits);
  } catch (const Damaged& damage) {
    raise_damage(file, layout, key, damage);
  }
}

void append_piece(const ByteSource& file, const FileLayout& layout, const PieceKey& key, const Piece& piece,
                  int64_t first, int64_t count, BlockColumn& column) {
  try {
    append_rows(piece, first, count, column);
  } catch (const Damaged& damage) {
    raise_damage(file, layout, key, damage);
  }
}

std::unique_ptr<ShardDecoder> make_decoder(const ByteSource& file, const ShardIndex& index, FileLayout layout,
                                           std::shared_ptr<PieceCache> cache) {
  return std::make_unique<ParquetDecoder>(file, index, std::move(layout), std::move(cache));
}

}  // namespace lockstep::parquet
