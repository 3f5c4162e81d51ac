#include "base/error.h"
#include "data/format/value_text.h"
#include "data/jsonl/jsonl_format.h"

namespace lockstep {
namespace {

void append_text(std::string_view text, std::string_view column, std::string& out) {
  if (!is_utf8(text)) throw UserError("jsonl cannot hold a value of column '{}': it is not UTF-8", column);
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out.append(1, '\\').append(1, c);
    else if (static_cast<unsigned char>(c) < 0x20)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  out += '"';
}

template <typename T>
void append_value(T value, std::string_view column, std::string& out) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    append_text(value, column, out);
  } else {
    if constexpr (std::is_floating_point_v<T>) {
      check_number(value, "jsonl", column);
      if (std::isnan(value)) {
        out += "null";
        return;
      }
    }
    append_number(value, out);
  }
}

class JsonlTableWriter : public TableWriter {
 public:
  explicit JsonlTableWriter(const std::vector<BlockField>& fields) {
    for (const BlockField& field : fields) {
      std::string key = keys_.empty() ? "{" : ",";
      append_text(field.name, field.name, key);
      keys_.push_back(key + ":");
    }
  }

  void append(const ColumnBlock& block, std::string& out) override {
    for (size_t r = 0; r < static_cast<size_t>(block.records); ++r) {
      for (size_t c = 0; c < keys_.size(); ++c) {
        out += keys_[c];
        append_values(block.columns[c], r, out);
      }
      out += "}\n";
    }
  }

  void finish(std::string&) override {}

 private:
  static void append_values(const BlockColumn& column, size_t record, std::string& out) {
    if (column.is_missing(record)) {
      out += "null";
      return;
    }
    const auto [begin, end] = values_of(column, record);
    std::visit(
        [&, begin = begin, end = end](const auto& values) {
          if (column.width == 1) return append_value(values[begin], column.name, out);
          out += '[';
          for (size_t i = begin; i < end; ++i) {
            if (i > begin) out += ',';
            append_value(values[i], column.name, out);
          }
          out += ']';
        },
        column.values);
  }

  std::vector<std::string> keys_;  // each with what stands before it
};

}  // namespace

std::unique_ptr<TableWriter> make_jsonl_writer(const std::vector<BlockField>& fields,
                                               const TableWriterOptions&) {
  return std::make_unique<JsonlTableWriter>(fields);
}

}  // namespace lockstep
