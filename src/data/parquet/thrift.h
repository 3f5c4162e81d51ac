// Thrift's compact protocol, as far as Parquet's footers and page headers need it.
//
// Reading trusts nothing: every length is checked against the bytes that are left, nesting is bounded, and
// what is wrong throws Damaged. Fields that are not asked for are skipped.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lockstep::parquet {

// Bytes that are not what the format says. The caller adds file, offset and column.
class Damaged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class ThriftType : uint8_t {
  kTrue = 1,
  kFalse = 2,
  kI8 = 3,
  kI16 = 4,
  kI32 = 5,
  kI64 = 6,
  kDouble = 7,
  kBinary = 8,
  kList = 9,
  kSet = 10,
  kMap = 11,
  kStruct = 12,
};

class ThriftReader {
 public:
  explicit ThriftReader(std::string_view bytes) : all_(bytes), left_(bytes) {}

  // on_field(id, type) takes the value of each field, or skips it.
  template <typename OnField>
  void structure(const OnField& on_field) {
    const Depth depth(depth_);
    int64_t id = 0;
    for (uint8_t head = byte(); head != 0; head = byte()) {
      const int delta = head >> 4;
      id = delta != 0 ? id + delta : zigzag();
      if (id < 0 || id > INT16_MAX) throw Damaged("a field has no valid number");
      on_field(static_cast<int>(id), static_cast<ThriftType>(head & 15));
    }
  }
  // on_element() takes each element.
  template <typename OnElement>
  void list(ThriftType type, ThriftType element, const OnElement& on_element) {
    for (uint64_t left = begin_list(type, element); left > 0; --left) on_element();
  }

  bool boolean(ThriftType type) const;
  int64_t integer(ThriftType type);
  std::string_view binary(ThriftType type);
  void expect(ThriftType type, ThriftType wanted) const;
  void skip(ThriftType type);

  // Of a list of integers or texts, where the element's type is known from the list.
  int64_t integer() { return zigzag(); }
  std::string_view binary();

  size_t consumed() const { return all_.size() - left_.size(); }

 private:
  struct Depth {
    explicit Depth(int& depth) : value(depth) {
      if (++value > kDeepest) throw Damaged("its structures are nested too deeply");
    }
    ~Depth() { --value; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& value;
  };
  static constexpr int kDeepest = 32;

  uint8_t byte();
  uint64_t varint();
  int64_t zigzag();
  std::string_view take(uint64_t count);
  uint64_t begin_list(ThriftType type, ThriftType element);

  std::string_view all_;
  std::string_view left_;
  int depth_ = 0;
};

// Writes fields in ascending order of their numbers.
class ThriftWriter {
 public:
  ThriftWriter& integer(int id, int64_t value, ThriftType type = ThriftType::kI32);
  ThriftWriter& boolean(int id, bool value);
  ThriftWriter& binary(int id, std::string_view value);
  ThriftWriter& structure(int id, const ThriftWriter& value);
  ThriftWriter& integers(int id, std::initializer_list<int> values);
  ThriftWriter& binaries(int id, std::initializer_list<std::string_view> values);
  // A list of structures: `bytes` are theirs one after the other.
  ThriftWriter& structures(int id, size_t count, std::string_view bytes);

  std::string bytes() const { return out_ + '\0'; }

 private:
  void field(int id, ThriftType type);
  void begin_list(int id, size_t count, ThriftType element);

  std::string out_;
  int last_ = 0;
};

}  // namespace lockstep::parquet
