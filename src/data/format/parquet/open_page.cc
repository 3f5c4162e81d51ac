#include "data/format/parquet/open_page.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "data/format/parquet/encodings.h"
#include "data/format/parquet/packed_runs.h"
#include "data/format/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

void check_crc(const PageHeader& header, std::string_view body) {
  if (!header.crc) return;
  const auto found = static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<z_size_t>(body.size())));
  if (found != *header.crc) throw Damaged("its crc is wrong; the file is damaged, write it again");
}

void unpack(Codec compression, std::string_view stored, std::span<char> out) {
  if (!decompress(compression, stored, out))
    throw Damaged(fmt::format("it does not unpack from {} to the {} bytes that its header claims",
                              lockstep::name_of(compression), out.size()));
}

// A level section of version 1 has its length before it.
std::string_view take_levels(std::string_view& body, Encoding encoding) {
  if (encoding != Encoding::kRle)
    throw Damaged(fmt::format("its levels are in {} encoding; write it again with a writer of this decade",
                              name_of(encoding)));
  uint32_t size = 0;
  if (body.size() >= 4) std::memcpy(&size, body.data(), 4);
  if (body.size() < 4 || size > body.size() - 4) throw Damaged("its levels end too early");
  const std::string_view levels = body.substr(4, size);
  body.remove_prefix(4 + size_t{size});
  return levels;
}

bool is_number(const Leaf& leaf) {
  return leaf.physical == Physical::kInt32 || leaf.physical == Physical::kInt64 ||
         leaf.physical == Physical::kFloat || leaf.physical == Physical::kDouble;
}

// Splits the bytes of a data page of version 1.
void split(std::string_view all, const Leaf& leaf, OpenPage& open) {
  open.values = all;
  if (open.header.kind != PageKind::kData) return;
  if (leaf.max_repetition > 0) open.repetition = take_levels(open.values, open.header.repetition_encoding);
  if (leaf.max_definition > 0) open.definition = take_levels(open.values, open.header.definition_encoding);
}

// How many bytes come before those that a stream unpacks to, where it holds these as they are: bytes that are
// not compressed, or snappy's where all of them are one literal. `head` is how the stream begins.
std::optional<size_t> before_stored(Codec compression, std::string_view head, size_t stored,
                                    size_t unpacked) {
  if (compression == Codec::kNone && stored == unpacked) return 0;
  if (compression != Codec::kSnappy || unpacked == 0 || stored < unpacked) return {};
  const size_t before = stored - unpacked;
  if (before > head.size()) return {};
  head = head.substr(0, before);
  uint64_t claimed = 0;
  for (int shift = 0;; shift += 7) {
    if (head.empty() || shift > 28) return {};
    const auto next = static_cast<uint8_t>(head[0]);
    head.remove_prefix(1);
    claimed |= static_cast<uint64_t>(next & 0x7f) << shift;
    if (next < 0x80) break;
  }
  if (claimed != unpacked || head.empty() || (head[0] & 3) != 0) return {};
  uint64_t length = static_cast<uint8_t>(head[0]) >> 2;
  head.remove_prefix(1);
  if (length >= 60) {
    if (head.size() != length - 59) return {};
    length = 0;
    std::memcpy(&length, head.data(), head.size());
    head = {};
  }
  if (!head.empty() || length + 1 != unpacked) return {};
  return before;
}

}  // namespace

void PageBytes::reset(size_t size) {
  if (size + kReadPast > room_) {
    // Whoever uses it again meets pages that are a little longer again and again.
    room_ = room_ == 0 ? size + kReadPast : std::bit_ceil(size + kReadPast);
    bytes_ = std::make_unique_for_overwrite<char[]>(room_);
  }
  size_ = size;
  std::fill_n(bytes_.get() + size, kReadPast, '\0');
}

OpenPage open_page(std::string_view page, const Leaf& leaf, Codec compression, const Limits& limits,
                   std::shared_ptr<PageBytes> heap) {
  OpenPage open{.header = parse_page_header(page), .heap = {}};
  const PageHeader& header = open.header;
  const std::string_view body = page.substr(header.header_bytes);
  check_header(header, body.size(), limits);
  check_crc(header, body);
  const auto unpacked = static_cast<size_t>(header.uncompressed);
  if (heap)
    heap->reset(unpacked);
  else
    heap = std::make_shared<PageBytes>(unpacked);
  open.heap = std::move(heap);
  const std::span<char> out = open.heap->all();
  if (header.kind != PageKind::kDataV2) {
    unpack(compression, body, out);
    split({out.data(), out.size()}, leaf, open);
    return open;
  }
  const auto repetition = static_cast<size_t>(header.repetition_bytes);
  const auto definition = static_cast<size_t>(header.definition_bytes);
  const size_t levels = repetition + definition;
  if (levels > body.size() || levels > out.size()) throw Damaged("its levels are longer than the page");
  std::copy_n(body.data(), levels, out.data());
  unpack(header.compressed ? compression : Codec::kNone, body.substr(levels), out.subspan(levels));
  open.repetition = {out.data(), repetition};
  open.definition = {out.data() + repetition, definition};
  open.values = {out.data() + levels, out.size() - levels};
  return open;
}

std::optional<StoredPage> find_stored(std::string_view head, size_t page_bytes, const Leaf& leaf,
                                      Codec compression, const Limits& limits) {
  StoredPage page{.header = parse_page_header(head)};
  const PageHeader& header = page.header;
  check_header(header, page_bytes - header.header_bytes, limits);
  if (header.crc) return {};
  page.end = page_bytes;
  page.begin = header.header_bytes;
  auto unpacked = static_cast<size_t>(header.uncompressed);
  if (header.kind == PageKind::kDataV2) {
    const auto repetition = static_cast<size_t>(header.repetition_bytes);
    const auto definition = static_cast<size_t>(header.definition_bytes);
    const size_t levels = repetition + definition;
    if (levels > page.end - page.begin || levels > unpacked)
      throw Damaged("its levels are longer than the page");
    if (levels > head.size() - page.begin) return {};
    page.definition = head.substr(page.begin + repetition, definition);
    page.begin += levels;
    unpacked -= levels;
  }
  const bool packed = header.kind != PageKind::kDataV2 || header.compressed;
  const auto before = before_stored(packed ? compression : Codec::kNone, head.substr(page.begin),
                                    page.end - page.begin, unpacked);
  if (!before) return {};
  page.begin += *before;
  if (header.kind != PageKind::kData) return page;
  for (const bool repetition : {true, false}) {
    if ((repetition ? leaf.max_repetition : leaf.max_definition) == 0) continue;
    const Encoding encoding = repetition ? header.repetition_encoding : header.definition_encoding;
    const std::string_view left = head.substr(page.begin);
    uint32_t size = 0;
    if (left.size() >= 4) std::memcpy(&size, left.data(), 4);
    if (encoding != Encoding::kRle || left.size() < 4 || size > left.size() - 4) return {};
    if (!repetition) page.definition = left.substr(4, size);
    page.begin += 4 + size_t{size};
  }
  return page;
}

void check_header(const PageHeader& header, size_t body_bytes, const Limits& limits) {
  if (static_cast<size_t>(header.stored) != body_bytes)
    throw Damaged(fmt::format("its header claims {} bytes, and {} follow", header.stored, body_bytes));
  if (header.uncompressed > limits.page_bytes || header.values > limits.page_values)
    throw Damaged(
        fmt::format("{} bytes with {} values are more than the {} bytes and {} values that are read at "
                    "once; write smaller pages",
                    header.uncompressed, header.values, limits.page_bytes, limits.page_values));
}

int bits_for(int level) { return std::bit_width(static_cast<unsigned>(level)); }

bool is_data(const PageHeader& header) {
  return header.kind == PageKind::kData || header.kind == PageKind::kDataV2;
}

bool by_dictionary(Encoding encoding) {
  return encoding == Encoding::kPlainDictionary || encoding == Encoding::kRleDictionary;
}

bool is_whole(const PageHeader& header, std::string_view definition, const Leaf& leaf) {
  return leaf.max_definition == 0 ||
         is_run_of(definition, bits_for(leaf.max_definition), static_cast<size_t>(header.values),
                   static_cast<uint32_t>(leaf.max_definition));
}

bool keeps_stored(const Leaf& leaf) { return is_number(leaf) && leaf.scale < 0 && !leaf.is_unsigned; }

size_t width_of(const Leaf& leaf) {
  return leaf.physical == Physical::kInt32 || leaf.physical == Physical::kFloat ? 4 : 8;
}

}  // namespace lockstep::parquet
