// ProtoWriter: a protocol buffer message, field by field, in the wire encoding. Enough for event files,
// records of features and ONNX models; a library and a code generator for a few message types would be
// heavier than this.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

class ProtoWriter {
 public:
  ProtoWriter& add_int(int field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  ProtoWriter& add_double(int field, double value) {
    key(field, 1);
    little_endian(std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  ProtoWriter& add_float(int field, float value) {
    key(field, 5);
    little_endian(std::bit_cast<uint32_t>(value), 4);
    return *this;
  }
  // A string, or a message within the message.
  ProtoWriter& add_bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }

  // The beginning of such a field, for whoever writes its bytes behind these himself.
  ProtoWriter& begin_bytes(int field, uint64_t size) {
    key(field, 2);
    varint(size);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, int wire_type) {
    varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void little_endian(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }

  std::string bytes_;
};

}  // namespace lockstep
