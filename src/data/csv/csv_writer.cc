#include <array>
#include <utility>

#include "base/error.h"
#include "data/csv/csv_format.h"
#include "data/format/value_text.h"

namespace lockstep {
namespace {

// What a character asks of the field that it stands in.
enum Kind : uint8_t { kPlain = 0, kQuoted = 1, kBeyondAscii = 2 };

constexpr auto kKinds = [] {
  std::array<uint8_t, 256> kinds{};
  for (const char c : {',', '"', '\r', '\n'}) kinds[static_cast<unsigned char>(c)] = kQuoted;
  for (size_t c = 128; c < kinds.size(); ++c) kinds[c] = kBeyondAscii;
  return kinds;
}();

uint8_t kinds_in(std::string_view text) {
  uint8_t kinds = kPlain;
  for (const char c : text) kinds = static_cast<uint8_t>(kinds | kKinds[static_cast<unsigned char>(c)]);
  return kinds;
}

void append_field(std::string_view text, uint8_t kinds, std::string& out) {
  if ((kinds & kQuoted) == 0) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

class CsvTableWriter : public TableWriter {
 public:
  explicit CsvTableWriter(const std::vector<BlockField>& fields) {
    for (const BlockField& field : fields) {
      if (field.width != 1)
        throw UserError("csv cannot hold column '{}': it has several values in a record", field.name);
      if (!is_utf8(field.name)) throw UserError("csv cannot hold a column whose name is not UTF-8");
      header_ += header_.empty() ? "" : ",";
      append_field(field.name, kinds_in(field.name), header_);
    }
    header_ += '\n';
  }

  void append(const ColumnBlock& block, std::string& out) override {
    out += std::exchange(header_, {});
    for (size_t r = 0; r < static_cast<size_t>(block.records); ++r) {
      const size_t begin = out.size();
      for (size_t c = 0; c < block.columns.size(); ++c) {
        if (c > 0) out += ',';
        append_value(block.columns[c], r, out);
      }
      // A line without any character would be passed over.
      if (out.size() == begin) out += block.columns[0].type() == ValueType::kBytes ? "\"\"" : "NA";
      out += '\n';
    }
  }

  void finish(std::string& out) override { out += std::exchange(header_, {}); }

 private:
  static void append_value(const BlockColumn& column, size_t record, std::string& out) {
    if (column.is_missing(record)) return;
    std::visit(
        [&](const auto& values) {
          const auto value = values[record];
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, std::string_view>) {
            const uint8_t kinds = kinds_in(value);
            if ((kinds & kBeyondAscii) != 0 && !is_utf8(value))
              throw UserError("csv cannot hold a value of column '{}': it is not UTF-8", column.name);
            append_field(value, kinds, out);
          } else {
            if constexpr (std::is_floating_point_v<T>) {
              if (std::isnan(value)) return;  // what the reader takes for missing
              check_number(value, "csv", column.name);
            }
            append_number(value, out);
          }
        },
        column.values);
  }

  std::string header_;
};

}  // namespace

std::unique_ptr<TableWriter> make_csv_writer(const std::vector<BlockField>& fields,
                                             const TableWriterOptions&) {
  return std::make_unique<CsvTableWriter>(fields);
}

}  // namespace lockstep
