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

// The page's body, once the header was found to be one that can be read.
std::string_view body_of(std::string_view page, const PageHeader& header, const Limits& limits) {
  const std::string_view body = page.substr(header.header_bytes);
  if (static_cast<size_t>(header.stored) != body.size())
    throw Damaged(fmt::format("its header claims {} bytes, and {} follow", header.stored, body.size()));
  if (header.uncompressed > limits.page_bytes || header.values > limits.page_values)
    throw Damaged(
        fmt::format("{} bytes with {} values are more than the {} bytes and {} values that are read at "
                    "once; write smaller pages",
                    header.uncompressed, header.values, limits.page_bytes, limits.page_values));
  return body;
}

// Splits the bytes of a data page of version 1.
void split(std::string_view all, const Leaf& leaf, OpenPage& open) {
  open.values = all;
  if (open.header.kind != PageKind::kData) return;
  if (leaf.max_repetition > 0) open.repetition = take_levels(open.values, open.header.repetition_encoding);
  if (leaf.max_definition > 0) open.definition = take_levels(open.values, open.header.definition_encoding);
}

// What unpacks to itself: bytes that are not compressed, or snappy's where all of them are one literal.
std::optional<std::string_view> as_stored(Codec compression, std::string_view stored, size_t unpacked) {
  if (compression == Codec::kNone && stored.size() == unpacked) return stored;
  if (compression != Codec::kSnappy || unpacked == 0 || stored.size() < unpacked) return {};
  const std::string_view bytes = stored.substr(stored.size() - unpacked);
  std::string_view head = stored.substr(0, stored.size() - unpacked);
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
  return bytes;
}

}  // namespace

PageBytes::PageBytes(size_t size)
    : size_(size), bytes_(std::make_unique_for_overwrite<char[]>(size + kReadPast)) {
  std::fill_n(bytes_.get() + size, kReadPast, '\0');
}

OpenPage open_page(std::string_view page, const Leaf& leaf, Codec compression, const Limits& limits) {
  OpenPage open{.header = parse_page_header(page), .heap = {}};
  const PageHeader& header = open.header;
  const std::string_view body = body_of(page, header, limits);
  check_crc(header, body);
  open.heap = std::make_shared<PageBytes>(static_cast<size_t>(header.uncompressed));
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

std::optional<OpenPage> open_stored(std::string_view page, const Leaf& leaf, Codec compression,
                                    const Limits& limits) {
  OpenPage open{.header = parse_page_header(page)};
  const PageHeader& header = open.header;
  const std::string_view body = body_of(page, header, limits);
  if (header.crc) return {};
  const auto unpacked = static_cast<size_t>(header.uncompressed);
  if (header.kind != PageKind::kDataV2) {
    const auto all = as_stored(compression, body, unpacked);
    if (!all) return {};
    split(*all, leaf, open);
    return open;
  }
  const auto repetition = static_cast<size_t>(header.repetition_bytes);
  const auto definition = static_cast<size_t>(header.definition_bytes);
  const size_t levels = repetition + definition;
  if (levels > body.size() || levels > unpacked) throw Damaged("its levels are longer than the page");
  const auto values =
      as_stored(header.compressed ? compression : Codec::kNone, body.substr(levels), unpacked - levels);
  if (!values) return {};
  open.repetition = body.substr(0, repetition);
  open.definition = body.substr(repetition, definition);
  open.values = *values;
  return open;
}

int bits_for(int level) { return std::bit_width(static_cast<unsigned>(level)); }

bool is_data(const PageHeader& header) {
  return header.kind == PageKind::kData || header.kind == PageKind::kDataV2;
}

bool by_dictionary(Encoding encoding) {
  return encoding == Encoding::kPlainDictionary || encoding == Encoding::kRleDictionary;
}

bool is_whole(const OpenPage& page, const Leaf& leaf) {
  return leaf.max_definition == 0 ||
         is_run_of(page.definition, bits_for(leaf.max_definition), static_cast<size_t>(page.header.values),
                   static_cast<uint32_t>(leaf.max_definition));
}

bool keeps_stored(const Leaf& leaf) { return is_number(leaf) && leaf.scale < 0 && !leaf.is_unsigned; }

size_t width_of(const Leaf& leaf) {
  return leaf.physical == Physical::kInt32 || leaf.physical == Physical::kFloat ? 4 : 8;
}

}  // namespace lockstep::parquet
