#include <cstring>

#include "base/error.h"
#include "data/tfrecord/tfrecord_format.h"

namespace lockstep {
namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
enum class ListKind : uint8_t { kNone = 0, kBytes = 1, kFloats = 2, kInts = 3 };

constexpr uint32_t key_of(uint32_t field, WireType type) { return field << 3 | type; }

[[noreturn]] void refuse() {
  throw RecordProblem("the record is no tf.train.Example; was it written as something else?");
}

// What is left of a message.
class Wire {
 public:
  explicit Wire(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return at_ == end_; }
  uint64_t varint() {
    if (at_ < end_ && static_cast<uint8_t>(*at_) < 0x80) return static_cast<uint8_t>(*at_++);
    uint64_t value = 0;
    for (uint32_t shift = 0; at_ < end_ && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    refuse();
  }
  uint32_t key() {
    const uint64_t key = varint();
    if (key >= uint64_t{1} << 32 || key < 8) refuse();
    return static_cast<uint32_t>(key);
  }
  std::string_view take(uint64_t count) {
    if (count > static_cast<uint64_t>(end_ - at_)) refuse();
    const std::string_view taken(at_, count);
    at_ += count;
    return taken;
  }
  std::string_view bytes() { return take(varint()); }
  void skip(uint32_t key) {
    switch (key & 7) {
      case kVarint: varint(); return;
      case kFixed64: take(8); return;
      case kLength: bytes(); return;
      case kFixed32: take(4); return;
      default: refuse();  // groups, which no Example has
    }
  }

 private:
  const char* at_;
  const char* end_;
};

struct Feature {
  std::string_view name;
  ListKind kind = ListKind::kNone;
  std::string_view list;
};

// The same for an entry as all writers write those with few values: the name, then one list, each shorter
// than 128 bytes and nothing else. False: it is another.
bool short_feature(std::string_view entry, Feature& feature) {
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(entry[at]); };
  constexpr size_t kShort = 128;
  if (entry.size() < 6 || byte(0) != key_of(1, kLength) || byte(1) >= kShort) return false;
  const size_t value = 2 + size_t{byte(1)};
  if (entry.size() < value + 4 || byte(value) != key_of(2, kLength)) return false;
  const size_t value_size = byte(value + 1), list_size = byte(value + 3);
  if (value_size >= kShort || value + 2 + value_size != entry.size() || list_size + 2 != value_size)
    return false;
  const uint8_t list = byte(value + 2);
  if (list != key_of(1, kLength) && list != key_of(2, kLength) && list != key_of(3, kLength)) return false;
  feature = {entry.substr(2, value - 2), static_cast<ListKind>(list >> 3), entry.substr(value + 4)};
  return true;
}

Feature feature_of(std::string_view entry) {
  Feature feature;
  if (short_feature(entry, feature)) return feature;
  Wire wire(entry);
  while (!wire.done()) {
    const uint32_t key = wire.key();
    if (key == key_of(1, kLength)) {
      feature.name = wire.bytes();
    } else if (key == key_of(2, kLength)) {
      Wire value(wire.bytes());
      while (!value.done()) {
        const uint32_t list = value.key();
        if (list != key_of(1, kLength) && list != key_of(2, kLength) && list != key_of(3, kLength)) {
          value.skip(list);
          continue;
        }
        if (feature.kind != ListKind::kNone)
          throw RecordProblem(fmt::format("feature '{}' has two lists of values", feature.name));
        feature.kind = static_cast<ListKind>(list >> 3);
        feature.list = value.bytes();
      }
    } else {
      wire.skip(key);
    }
  }
  return feature;
}

template <typename Take>
void for_each_feature(std::string_view message, const Take& take) {
  Wire example(message);
  while (!example.done()) {
    const uint32_t outer = example.key();
    if (outer != key_of(1, kLength)) {
      example.skip(outer);
      continue;
    }
    Wire features(example.bytes());
    while (!features.done()) {
      const uint32_t inner = features.key();
      if (inner == key_of(1, kLength))
        take(feature_of(features.bytes()));
      else
        features.skip(inner);
    }
  }
}

// Calls text(bytes), floats(packed bytes) or whole(value) for the values of a list.
template <typename Text, typename Floats, typename Whole>
void for_each_value(const Feature& feature, const Text& text, const Floats& floats, const Whole& whole) {
  Wire list(feature.list);
  while (!list.done()) {
    const uint32_t key = list.key();
    if (feature.kind == ListKind::kBytes && key == key_of(1, kLength)) {
      text(list.bytes());
    } else if (feature.kind == ListKind::kFloats && key == key_of(1, kLength)) {
      const std::string_view packed = list.bytes();
      if (packed.size() % sizeof(float) != 0) refuse();
      floats(packed);
    } else if (feature.kind == ListKind::kFloats && key == key_of(1, kFixed32)) {
      floats(list.take(sizeof(float)));
    } else if (feature.kind == ListKind::kInts && key == key_of(1, kLength)) {
      Wire packed(list.bytes());
      while (!packed.done()) whole(static_cast<int64_t>(packed.varint()));
    } else if (feature.kind == ListKind::kInts && key == key_of(1, kVarint)) {
      whole(static_cast<int64_t>(list.varint()));
    } else {
      list.skip(key);
    }
  }
}

}  // namespace

namespace {

// A list of a single number into a column of plain numbers, which is what most features are. False: it is
// something else, and nothing was done.
bool take_number(const Feature& feature, int column, RecordSink& sink) {
  const std::string_view list = feature.list;
  if (!sink.takes_reals(column) || list.size() < 3 || list[0] != key_of(1, kLength) ||
      static_cast<uint8_t>(list[1]) != list.size() - 2)
    return false;
  if (feature.kind == ListKind::kFloats && list.size() == 2 + sizeof(float)) {
    float value = 0;
    std::memcpy(&value, list.data() + 2, sizeof value);
    return sink.take_real(column, static_cast<double>(value));
  }
  if (feature.kind != ListKind::kInts) return false;
  Wire packed(list.substr(2));
  const auto value = static_cast<int64_t>(packed.varint());
  return packed.done() && sink.take_real(column, static_cast<double>(value));
}

}  // namespace

void read_example(std::string_view message, RecordSink& sink) {
  size_t slot = 0;
  for_each_feature(message, [&](const Feature& feature) {
    const int column = sink.column_of(slot++, feature.name);
    if (column == RecordSink::kUnwanted || take_number(feature, column, sink)) return;
    sink.begin_cell(column);
    for_each_value(
        feature, [&](std::string_view text) { sink.add_text(column, text); },
        [&](std::string_view packed) { sink.add_floats(column, packed); },
        [&](int64_t value) { sink.add_whole(column, value); });
    if (feature.kind == ListKind::kNone) sink.set_missing(column);
    sink.end_cell(column);
  });
  sink.end_record();
}

void survey_example(std::string_view message, FieldSurvey& survey) {
  for_each_feature(message, [&](const Feature& feature) {
    FieldSurvey::Seen& seen = survey.seen(feature.name);
    int64_t values = 0;
    for_each_value(
        feature, [&](std::string_view) { ++values; },
        [&](std::string_view packed) { values += static_cast<int64_t>(packed.size() / sizeof(float)); },
        [&](int64_t value) {
          ++values;
          seen.beyond_double = seen.beyond_double || FieldSurvey::is_beyond_double(value);
        });
    if (values == 0) return;
    seen.text = seen.text || feature.kind == ListKind::kBytes;
    seen.real = seen.real || feature.kind == ListKind::kFloats;
    seen.whole = seen.whole || feature.kind == ListKind::kInts;
    FieldSurvey::count(seen, values);
  });
}

}  // namespace lockstep
