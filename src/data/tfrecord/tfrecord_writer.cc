#include "base/proto_writer.h"
#include "data/bytes/tfrecord_frame.h"
#include "data/format/value_text.h"
#include "data/tfrecord/tfrecord_format.h"

namespace lockstep {
namespace {

// The fields of the message Feature.
constexpr int kBytesList = 1, kFloatList = 2, kInt64List = 3;

template <typename T>
constexpr int list_of() {
  if constexpr (std::is_same_v<T, float>) return kFloatList;
  if constexpr (std::is_integral_v<T>) return kInt64List;
  return kBytesList;
}

void add_value(ProtoWriter& list, std::string_view value) { list.add_bytes(1, value); }
void add_value(ProtoWriter& list, float value) { list.add_float(1, value); }
void add_value(ProtoWriter& list, std::integral auto value) { list.add_int(1, value); }
void add_value(ProtoWriter& list, double value) {
  std::string text;
  append_number(value, text);
  list.add_bytes(1, text);
}

class TfrecordTableWriter : public TableWriter {
 public:
  void append(const ColumnBlock& block, std::string& out) override {
    for (size_t r = 0; r < static_cast<size_t>(block.records); ++r) {
      ProtoWriter features;
      for (const BlockColumn& column : block.columns) {
        ProtoWriter entry;
        entry.add_bytes(1, column.name).add_bytes(2, feature(column, r).bytes());
        features.add_bytes(1, entry.bytes());
      }
      append_tfrecord(ProtoWriter().add_bytes(1, features.bytes()).bytes(), out);
    }
  }

  void finish(std::string&) override {}

 private:
  static ProtoWriter feature(const BlockColumn& column, size_t record) {
    ProtoWriter feature;
    if (column.is_missing(record)) return feature;
    const auto [begin, end] = values_of(column, record);
    std::visit(
        [&, begin = begin, end = end](const auto& values) {
          ProtoWriter list;
          using T = typename std::decay_t<decltype(values)>::value_type;
          for (size_t i = begin; i < end; ++i) {
            if constexpr (std::is_floating_point_v<T>) check_number(values[i], "tfrecord", column.name);
            add_value(list, values[i]);
          }
          feature.add_bytes(list_of<T>(), list.bytes());
        },
        column.values);
    return feature;
  }
};

}  // namespace

std::unique_ptr<TableWriter> make_tfrecord_writer(const std::vector<BlockField>&, const TableWriterOptions&) {
  return std::make_unique<TfrecordTableWriter>();
}

}  // namespace lockstep
