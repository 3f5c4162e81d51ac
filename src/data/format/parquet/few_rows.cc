#include "data/format/parquet/few_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "data/format/parquet/encoded_bytes.h"
#include "data/format/parquet/mapped_page.h"
#include "data/format/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

// Headers with their levels, unless statistics make them longer.
constexpr size_t kHead = 256;
// Runs of indices whose heads are asked for before they are reached: each is a miss of the cache.
constexpr size_t kRunsAhead = 4;

using Head = std::array<char, kHead>;

std::optional<std::string_view> copy_head(const MappedPage& page, Head& head) {
  const size_t bytes = std::min(head.size(), page.size());
  if (!page.read([&](std::string_view all) { std::memcpy(head.data(), all.data(), bytes); })) return {};
  return std::string_view(head.data(), bytes);
}

// One of numbers that are packed one after another.
uint32_t packed_number(const char* bytes, size_t number, size_t bits) {
  const size_t at = number * bits, shift = at % 8;
  uint64_t word = 0;
  std::memcpy(&word, bytes + at / 8, (shift + bits + 7) / 8);
  return static_cast<uint32_t>(word >> shift & ((uint64_t{1} << bits) - 1));
}

// The numbers of these rows. Under a guard: false instead of throwing.
bool pick(std::string_view runs, int bits, size_t in_page, std::span<const uint32_t> rows, uint32_t* out) {
  try {
    RunReader reader(runs, bits, in_page);
    size_t next = 0;
    for (EncodedRun run; next < rows.size() && reader.next(run);) {
      if (run.packed != nullptr) {
        const size_t ahead = kRunsAhead * (run.count * static_cast<size_t>(bits) / 8 + 1);
        if (ahead < static_cast<size_t>(runs.data() + runs.size() - run.packed))
          __builtin_prefetch(run.packed - 1 + ahead);
      }
      for (; next < rows.size() && rows[next] < run.first + run.count; ++next)
        out[next] = run.packed == nullptr
                        ? run.value
                        : packed_number(run.packed, rows[next] - run.first, static_cast<size_t>(bits));
    }
    return next == rows.size();
  } catch (const Damaged&) {
    return false;
  }
}

}  // namespace

bool read_few_rows(const PageColumn& column, const PageSpan& span, int64_t in_page,
                   std::span<const uint32_t> rows, FewRows& out) {
  const auto page = MappedPage::of(column.file, span);
  Head copied;
  const auto head = page ? copy_head(*page, copied) : std::nullopt;
  if (!head || rows.empty()) return false;
  std::optional<StoredPage> stored;
  try {
    stored = find_stored(*head, page->size(), column.leaf, column.compression, column.limits);
    if (!stored || !is_data(stored->header) || stored->header.values != in_page ||
        !is_whole(stored->header, stored->definition, column.leaf))
      return false;
  } catch (const Damaged&) {
    return false;
  }
  const auto values_of = [&](std::string_view all) {
    return all.substr(stored->begin, stored->end - stored->begin);
  };
  const auto count = static_cast<size_t>(in_page);
  out.by_dictionary = by_dictionary(stored->header.encoding);
  if (out.by_dictionary) {
    out.picks.resize(rows.size());
    bool picked = false;
    return page->read([&](std::string_view all) {
      const std::string_view values = values_of(all);
      const int bits = values.empty() ? 0 : static_cast<uint8_t>(values[0]);
      picked = bits >= 1 && bits <= 32 && pick(values.substr(1), bits, count, rows, out.picks.data());
    }) && picked;
  }
  const size_t width = width_of(column.leaf);
  if (stored->header.encoding != Encoding::kPlain || !keeps_stored(column.leaf) ||
      (stored->end - stored->begin) / width < count)
    return false;
  out.numbers.resize(rows.size() * width);
  return page->read([&](std::string_view all) {
    const char* const values = values_of(all).data();
    for (size_t i = 0; i < rows.size(); ++i)
      std::memcpy(out.numbers.data() + i * width, values + rows[i] * width, width);
  });
}

std::shared_ptr<const StoredDictionary> find_stored_dictionary(const PageColumn& column,
                                                               const PageSpan& span) {
  const auto page = MappedPage::of(column.file, span);
  Head copied;
  const auto head = page ? copy_head(*page, copied) : std::nullopt;
  if (!head) return nullptr;
  const PageHeader header = parse_page_header(*head);
  check_header(header, page->size() - header.header_bytes, column.limits);
  if (header.kind != PageKind::kDictionary) return nullptr;
  auto found = std::make_shared<StoredDictionary>();
  found->span = span;
  found->size = static_cast<size_t>(header.values);
  if (!keeps_stored(column.leaf) || header.crc) return found;
  found->begin = header.header_bytes;
  found->width = width_of(column.leaf);
  const auto unpacked = static_cast<size_t>(header.uncompressed);
  if (unpacked / found->width < found->size) return found;
  // Entries are wanted from all over it: where it is not in memory, it should come at once.
  column.file.expect(span.offset, span.bytes);
  if (column.compression == Codec::kNone && unpacked == page->size() - found->begin) {
    found->extents.set_whole(unpacked);
    found->singly = true;
  } else if (column.compression == Codec::kSnappy) {
    bool few = false;
    found->singly = page->read([&](std::string_view all) {
      few = found->extents.find(all.substr(found->begin), unpacked);
    }) && few;
  }
  return found;
}

bool read_entries(const ByteSource& file, const StoredDictionary& dictionary, std::span<const uint32_t> picks,
                  std::vector<char>& out) {
  const auto page = MappedPage::of(file, dictionary.span);
  if (!page) return false;
  const size_t width = dictionary.width;
  out.resize(picks.size() * width);
  return page->read([&](std::string_view all) {
    const char* const stream = all.data() + dictionary.begin;
    for (size_t i = 0; i < picks.size(); ++i)
      dictionary.extents.read(stream, picks[i] * width, width, out.data() + i * width);
  });
}

}  // namespace lockstep::parquet
