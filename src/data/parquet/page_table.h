// PageTable: where every page of a Parquet file lies and which rows it holds. Made once from the page
// headers, kept in the shard's index.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/bytes/byte_source.h"
#include "data/parquet/pages.h"

namespace lockstep::parquet {

struct ChunkPages {
  PageSpan dictionary;          // without bytes: there is none
  std::vector<PageSpan> pages;  // with values
  std::vector<int64_t> firsts;  // the first row of each piece in the row group, and the number of rows

  int64_t pieces() const { return static_cast<int64_t>(firsts.size()) - 1; }
  int64_t rows_of(int64_t piece) const {
    return firsts[static_cast<size_t>(piece) + 1] - firsts[static_cast<size_t>(piece)];
  }
};

// Rows that are left out, counted through the whole file.
struct RowRange {
  int64_t first = 0;
  int64_t count = 0;
};

struct PageTable {
  std::vector<std::vector<ChunkPages>> groups;  // of each row group, of each leaf
  std::vector<RowRange> bad;                    // ascending, apart from each other

  std::string to_bytes() const;
  // Throws UserError for other bytes than to_bytes gives.
  static PageTable parse(std::string_view bytes, size_t leaves);
};

// Follows the headers of one column chunk. Throws Damaged.
ChunkPages find_pages(const ByteSource& file, const ColumnChunk& chunk, const Leaf& leaf, int64_t rows);

// RowPlaces: where the records of one Parquet file lie: in which row of which row group, and in which page.

// Some rows of one row group.
struct Part {
  size_t group = 0;
  int64_t first = 0;  // in the group
  int64_t count = 0;
};

class RowPlaces {
 public:
  // Records are the rows of the file less those that are left out.
  RowPlaces(const std::vector<RowGroup>& groups, const std::vector<RowRange>& bad) {
    for (const RowGroup& group : groups) group_rows_.push_back(group_rows_.back() + group.rows);
    int64_t left_out = 0;
    for (const RowRange& range : bad) {
      left_out += range.count;
      runs_.push_back({range.first + range.count - left_out, range.first + range.count});
    }
  }

  int64_t row_of(int64_t record) const {
    const Run& run = runs_[run_of(record)];
    return run.row + record - run.record;
  }
  size_t group_of(int64_t row) const {
    return static_cast<size_t>(std::upper_bound(group_rows_.begin(), group_rows_.end(), row) -
                               group_rows_.begin()) -
           1;
  }
  int64_t first_row(size_t group) const { return group_rows_[group]; }

  // take(part) for the parts that hold these records, in their order.
  template <typename Take>
  void for_each_part(int64_t first, int64_t count, const Take& take) const {
    for (const int64_t end = first + count; first < end;) {
      const size_t run = run_of(first);
      const int64_t run_end = run + 1 < runs_.size() ? std::min(end, runs_[run + 1].record) : end;
      const int64_t row = row_of(first);
      const size_t group = group_of(row);
      LOCKSTEP_CHECK(group + 1 < group_rows_.size(), "row {} of {}", row, group_rows_.back());
      const int64_t here = std::min(run_end - first, group_rows_[group + 1] - row);
      take(Part{group, row - group_rows_[group], here});
      first += here;
    }
  }

 private:
  // Consecutive records that are also consecutive rows of the file.
  struct Run {
    int64_t record = 0;
    int64_t row = 0;
  };

  size_t run_of(int64_t record) const {
    const auto after = std::upper_bound(runs_.begin(), runs_.end(), record,
                                        [](int64_t value, const Run& run) { return value < run.record; });
    return static_cast<size_t>(after - runs_.begin()) - 1;
  }

  std::vector<Run> runs_{{0, 0}};
  std::vector<int64_t> group_rows_{0};  // the first row of each group, and all rows
};

// take(piece, first row in it, rows) for the pieces of a column that hold a part.
template <typename Take>
void for_each_piece(const ChunkPages& chunk, int64_t first, int64_t count, const Take& take) {
  const std::vector<int64_t>& firsts = chunk.firsts;
  for (const int64_t end = first + count; first < end;) {
    const auto piece = std::upper_bound(firsts.begin(), firsts.end(), first) - firsts.begin() - 1;
    const auto at = static_cast<size_t>(piece);
    LOCKSTEP_CHECK(at + 1 < firsts.size(), "row {} of a group of {}", first, firsts.back());
    const int64_t here = std::min(end, firsts[at + 1]) - first;
    take(static_cast<int64_t>(piece), first - firsts[at], here);
    first += here;
  }
}

}  // namespace lockstep::parquet
