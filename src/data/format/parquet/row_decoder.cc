#include "data/format/parquet/row_decoder.h"

#include <algorithm>

#include "data/format/parquet/page_rows.h"
#include "data/format/parquet/row_loops.h"

namespace lockstep::parquet {
namespace {

// Rows that are decoded column by column before they are put together: the more, the more of them find the
// dictionary of a column in the processor's cache, into which the first ones brought it.
constexpr size_t kStretch = 32768;

// Columns of a stretch, which a thread uses again and again.
std::vector<uint32_t>& stretch_columns() {
  thread_local std::vector<uint32_t> columns;
  return columns;
}

}  // namespace

// Columns whose places follow each other in a row.
struct RowDecoder::Group {
  std::span<const EncodedColumn> columns;
  size_t first, places;
};

std::vector<EncodedColumn> RowDecoder::columns_of(const RowEncoding& encoding) const {
  std::vector<EncodedColumn> columns;
  const std::vector<std::string> names = encoding.place_columns();
  for (size_t place = 0; place < names.size(); ++place) {
    const auto leaf = std::find_if(layout_.wanted.begin(), layout_.wanted.end(), [&](size_t wanted) {
      return layout_.metadata.leaves[wanted].name == names[place];
    });
    if (leaf == layout_.wanted.end() || layout_.metadata.leaves[*leaf].list()) return {};
    const auto known = std::find_if(columns.begin(), columns.end(),
                                    [&](const EncodedColumn& column) { return column.leaf == *leaf; });
    if (known == columns.end())
      columns.push_back({*leaf, {place}});
    else
      known->places.push_back(place);
  }
  return columns;
}

// Columns are in the order of their first places, but one may have others further on.
std::vector<RowDecoder::Group> RowDecoder::groups_of(std::span<const EncodedColumn> columns) {
  std::vector<Group> groups;
  size_t first = 0, places = 0, end = 0;  // of the group that is being made
  for (size_t from = 0, c = 0; c < columns.size(); ++c) {
    places += columns[c].places.size();
    end = std::max(end, columns[c].places.back() + 1);
    const bool follow = first + places == end;
    if ((places < kPlacesTogether || !follow) && c + 1 < columns.size()) continue;
    groups.push_back({columns.subspan(from, c + 1 - from), first, places});
    from = c + 1;
    first = end;
    places = 0;
  }
  return groups;
}

bool RowDecoder::decode(const RowEncoding& encoding, const Part& part, const uint32_t* only, size_t count,
                        const Fetch& fetch, std::byte* rows) const {
  const std::vector<EncodedColumn> columns = columns_of(encoding);
  if (columns.empty()) return false;
  const std::vector<Group> groups = groups_of(columns);
  const size_t row_bytes = (groups.back().first + groups.back().places) * kPlaceBytes;
  const GroupReading reading{bytes_, file_, layout_, cache_, encoding, fetch, part.group};
  PageRowReader reader(reading, std::min(kStretch, count));
  std::vector<uint32_t*> outs;
  for (size_t done = 0; done < count; done += kStretch) {
    const size_t here = std::min(kStretch, count - done);
    // Columns a power of two apart would all want the same few places of the nearest cache.
    const size_t apart = (here + 15) / 16 * 16 + 16;
    for (const Group& group : groups) {
      std::vector<uint32_t>& values = stretch_columns();
      if (values.size() < group.places * apart) values.resize(group.places * apart);
      for (const EncodedColumn& column : group.columns) {
        const auto take = [&](int64_t page, const PageRows& wanted, size_t at) {
          outs.clear();
          for (const size_t place : column.places)
            outs.push_back(values.data() + (place - group.first) * apart + at);
          return reader.take(column, page, wanted, outs);
        };
        const bool taken = only == nullptr ? take_all(column, part, done, here, take)
                                           : take_named(column, part, std::span(only + done, here), take);
        if (!taken) return false;
      }
      put_into_rows(values.data(), apart, group.places, here,
                    rows + done * row_bytes + group.first * kPlaceBytes, row_bytes);
    }
  }
  if (reader.mapped()) bytes_.check_unchanged(*reader.mapped());
  if (reader.only_few())
    reads_mapped_ = true;
  else if (!reader.mapped() && reads_mapped_.exchange(false))
    bytes_.forget_mapped();  // from here on blocks are read
  return true;
}

template <typename Take>
bool RowDecoder::take_all(const EncodedColumn& column, const Part& part, size_t first, size_t count,
                          const Take& take) const {
  bool taken = true;
  size_t at = 0;
  for_each_piece(layout_.pages.groups[part.group][column.leaf], part.first + static_cast<int64_t>(first),
                 static_cast<int64_t>(count), [&](int64_t page, int64_t from, int64_t rows) {
                   const auto wanted = static_cast<size_t>(rows);
                   taken = taken && take(page, {static_cast<size_t>(from), wanted, nullptr, 0}, at);
                   at += wanted;
                 });
  return taken;
}

template <typename Take>
bool RowDecoder::take_named(const EncodedColumn& column, const Part& part, std::span<const uint32_t> rows,
                            const Take& take) const {
  const std::vector<int64_t>& firsts = layout_.pages.groups[part.group][column.leaf].firsts;
  for (size_t at = 0, end = 0; at < rows.size(); at = end) {
    const auto page = std::upper_bound(firsts.begin(), firsts.end(), part.first + int64_t{rows[at]}) - 1;
    for (end = at + 1; end < rows.size() && part.first + int64_t{rows[end]} < page[1];) ++end;
    if (!take(page - firsts.begin(), {0, end - at, rows.data() + at, *page - part.first}, at)) return false;
  }
  return true;
}

}  // namespace lockstep::parquet
