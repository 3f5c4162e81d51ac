#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "data/parquet/pages.h"
#include "data/parquet/thrift.h"

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

// Splits the bytes of a data page of version 1.
void split(std::string_view all, const Leaf& leaf, OpenPage& open) {
  open.values = all;
  if (open.header.kind != PageKind::kData) return;
  if (leaf.max_repetition > 0) open.repetition = take_levels(open.values, open.header.repetition_encoding);
  if (leaf.max_definition > 0) open.definition = take_levels(open.values, open.header.definition_encoding);
}

}  // namespace

PageBytes::PageBytes(size_t size, BigMemory* memory)
    : size_(size),
      bytes_(memory != nullptr ? memory->take(size + kReadPast)
                               : BigBytes(std::make_unique_for_overwrite<std::byte[]>(size + kReadPast))) {
  std::fill_n(bytes_.data() + size, kReadPast, std::byte{0});
}

OpenPage open_page(std::string_view page, const Leaf& leaf, Codec compression, const Limits& limits) {
  OpenPage open{.header = parse_page_header(page)};
  const PageHeader& header = open.header;
  const std::string_view body = page.substr(header.header_bytes);
  check_header(header, body.size(), limits);
  check_crc(header, body);
  open.heap = std::make_shared<PageBytes>(static_cast<size_t>(header.uncompressed), limits.memory);
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

}  // namespace lockstep::parquet
