#include "data/parquet/thrift.h"

#include <fmt/format.h>

namespace lockstep::parquet {
namespace {

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

uint64_t to_zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

}  // namespace

uint8_t ThriftReader::byte() { return static_cast<uint8_t>(take(1)[0]); }

uint64_t ThriftReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t next = byte();
    value |= static_cast<uint64_t>(next & 0x7f) << shift;
    if (next < 0x80) return value;
  }
  throw Damaged("a number is too long");
}

int64_t ThriftReader::zigzag() {
  const uint64_t value = varint();
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

std::string_view ThriftReader::take(uint64_t count) {
  if (count > left_.size()) throw Damaged("it ends too early");
  const std::string_view taken = left_.substr(0, count);
  left_.remove_prefix(count);
  return taken;
}

void ThriftReader::expect(ThriftType type, ThriftType wanted) const {
  if (type != wanted)
    throw Damaged(
        fmt::format("a field is of type {} instead of {}", static_cast<int>(type), static_cast<int>(wanted)));
}

bool ThriftReader::boolean(ThriftType type) const {
  if (type != ThriftType::kFalse) expect(type, ThriftType::kTrue);
  return type == ThriftType::kTrue;
}

int64_t ThriftReader::integer(ThriftType type) {
  if (type == ThriftType::kI8) return static_cast<int8_t>(byte());
  if (type != ThriftType::kI16 && type != ThriftType::kI32) expect(type, ThriftType::kI64);
  return zigzag();
}

std::string_view ThriftReader::binary(ThriftType type) {
  expect(type, ThriftType::kBinary);
  return binary();
}

std::string_view ThriftReader::binary() { return take(varint()); }

uint64_t ThriftReader::begin_list(ThriftType type, ThriftType element) {
  expect(type, ThriftType::kList);
  const uint8_t head = byte();
  const uint64_t count = head >> 4 == 15 ? varint() : head >> 4;
  // An element takes at least a byte.
  if (count > left_.size()) throw Damaged("a list is longer than what holds it");
  if (count > 0) expect(static_cast<ThriftType>(head & 15), element);
  return count;
}

void ThriftReader::skip(ThriftType type) {
  const Depth depth(depth_);
  switch (type) {
    case ThriftType::kTrue:
    case ThriftType::kFalse: return;
    case ThriftType::kI8: take(1); return;
    case ThriftType::kI16:
    case ThriftType::kI32:
    case ThriftType::kI64: varint(); return;
    case ThriftType::kDouble: take(8); return;
    case ThriftType::kBinary: binary(); return;
    case ThriftType::kList:
    case ThriftType::kSet: {
      const uint8_t head = byte();
      const uint64_t count = head >> 4 == 15 ? varint() : head >> 4;
      if (count > left_.size()) throw Damaged("a list is longer than what holds it");
      const auto element = static_cast<ThriftType>(head & 15);
      const bool flags = element == ThriftType::kTrue || element == ThriftType::kFalse;
      for (uint64_t i = 0; i < count; ++i) flags ? static_cast<void>(byte()) : skip(element);
      return;
    }
    case ThriftType::kMap: {
      const uint64_t count = varint();
      if (count == 0) return;
      if (count > left_.size()) throw Damaged("a map is longer than what holds it");
      const uint8_t types = byte();
      const auto skip_one = [&](ThriftType of) {
        of == ThriftType::kTrue || of == ThriftType::kFalse ? static_cast<void>(byte()) : skip(of);
      };
      for (uint64_t i = 0; i < count; ++i) {
        skip_one(static_cast<ThriftType>(types >> 4));
        skip_one(static_cast<ThriftType>(types & 15));
      }
      return;
    }
    case ThriftType::kStruct: structure([&](int, ThriftType field) { skip(field); }); return;
  }
  throw Damaged(fmt::format("a field is of the unknown type {}", static_cast<int>(type)));
}

void ThriftWriter::field(int id, ThriftType type) {
  const int delta = id - last_;
  last_ = id;
  if (delta >= 1 && delta <= 15) {
    out_.push_back(static_cast<char>(delta << 4 | static_cast<int>(type)));
    return;
  }
  out_.push_back(static_cast<char>(type));
  put_varint(out_, to_zigzag(id));
}

void ThriftWriter::begin_list(int id, size_t count, ThriftType element) {
  field(id, ThriftType::kList);
  out_.push_back(
      static_cast<char>(static_cast<int>(count < 15 ? count : 15) << 4 | static_cast<int>(element)));
  if (count >= 15) put_varint(out_, count);
}

ThriftWriter& ThriftWriter::integer(int id, int64_t value, ThriftType type) {
  field(id, type);
  put_varint(out_, to_zigzag(value));
  return *this;
}

ThriftWriter& ThriftWriter::boolean(int id, bool value) {
  field(id, value ? ThriftType::kTrue : ThriftType::kFalse);
  return *this;
}

ThriftWriter& ThriftWriter::binary(int id, std::string_view value) {
  field(id, ThriftType::kBinary);
  put_varint(out_, value.size());
  out_ += value;
  return *this;
}

ThriftWriter& ThriftWriter::structure(int id, const ThriftWriter& value) {
  field(id, ThriftType::kStruct);
  out_ += value.bytes();
  return *this;
}

ThriftWriter& ThriftWriter::integers(int id, std::initializer_list<int> values) {
  begin_list(id, values.size(), ThriftType::kI32);
  for (const int value : values) put_varint(out_, to_zigzag(value));
  return *this;
}

ThriftWriter& ThriftWriter::binaries(int id, std::initializer_list<std::string_view> values) {
  begin_list(id, values.size(), ThriftType::kBinary);
  for (const std::string_view value : values) {
    put_varint(out_, value.size());
    out_ += value;
  }
  return *this;
}

ThriftWriter& ThriftWriter::structures(int id, size_t count, std::string_view bytes) {
  begin_list(id, count, ThriftType::kStruct);
  out_ += bytes;
  return *this;
}

}  // namespace lockstep::parquet
