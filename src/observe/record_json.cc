#include "observe/record_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "observe/record_fields.h"

namespace lockstep {
namespace {

using nlohmann::json;

// Most steps have nothing to say here.
bool absent_if_empty(std::string_view name) { return name == "action" || name == "note"; }

std::string number_text(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  std::string text = fmt::format("{}", value);
  // "-0" would be read as an integer, and lose its sign.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Writes a record's fields as one JSON object without blanks.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void operator()(std::string_view name, int64_t value) { key(name) += fmt::format("{}", value); }
  void operator()(std::string_view name, double value) { key(name) += number_text(value); }
  void operator()(std::string_view name, bool value) { key(name) += value ? "true" : "false"; }
  void operator()(std::string_view name, const std::string& value) {
    if (value.empty() && absent_if_empty(name)) return;
    key(name) += json(value).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  // A list without items is not there.
  void operator()(std::string_view name, const std::vector<std::string>& values) {
    if (!values.empty()) key(name) += json(values).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  void operator()(std::string_view name, const std::vector<int64_t>& values) {
    if (!values.empty()) key(name) += json(values).dump();
  }
  template <typename Record>
  void operator()(std::string_view name, const std::vector<Record>& records) {
    if (records.empty()) return;
    key(name) += '[';
    for (size_t i = 0; i < records.size(); ++i) {
      if (i > 0) out_ += ',';
      Writer(out_).write(records[i]);
    }
    out_ += ']';
  }
  template <typename T>
  void operator()(std::string_view name, const std::optional<T>& value) {
    if (value) (*this)(name, *value);
  }
  // A score that is undefined.
  void operator()(std::string_view name, const std::optional<double>& value) {
    if (value) key(name) += std::isnan(*value) ? "null" : number_text(*value);
  }
  template <typename Record>
  void operator()(std::string_view name, const Record& record) {
    Writer(key(name)).write(record);
  }

  template <typename Record>
  void write(const Record& record, std::string_view kind = "") {
    out_ += '{';
    if (!kind.empty()) (*this)("kind", std::string(kind));
    visit_fields(record, *this);
    out_ += '}';
  }

 private:
  std::string& key(std::string_view name) {
    out_ += fmt::format("{}\"{}\":", first_ ? "" : ",", name);
    first_ = false;
    return out_;
  }

  std::string& out_;
  bool first_ = true;
};

template <typename Record>
std::string to_line(const Record& record, std::string_view kind) {
  std::string line;
  Writer(line).write(record, kind);
  return line;
}

// Fills a record's fields from a JSON object.
class Reader {
 public:
  Reader(const json& object, const std::string& place) : object_(object), place_(place) {}

  void operator()(const char* name, int64_t& value) {
    const json& field = required(name);
    // Beyond the signed range the library holds an unsigned number, which is none of ours.
    if (!field.is_number_integer() || (field.is_number_unsigned() && field.get<uint64_t>() > kLargest))
      fail(name, field, "a whole number");
    value = field.get<int64_t>();
  }
  void operator()(const char* name, double& value) {
    const json& field = required(name);
    if (field.is_number())
      value = field.get<double>();
    else if (field == "nan")
      value = std::numeric_limits<double>::quiet_NaN();
    else if (field == "inf")
      value = std::numeric_limits<double>::infinity();
    else if (field == "-inf")
      value = -std::numeric_limits<double>::infinity();
    else
      fail(name, field, "a number, \"nan\", \"inf\" or \"-inf\"");
  }
  void operator()(const char* name, bool& value) {
    const json& field = required(name);
    if (!field.is_boolean()) fail(name, field, "true or false");
    value = field.get<bool>();
  }
  void operator()(const char* name, std::string& value) {
    if (absent_if_empty(name) && !object_.contains(name)) return;
    const json& field = required(name);
    if (!field.is_string()) fail(name, field, "a string");
    value = field.get<std::string>();
  }
  void operator()(const char* name, std::vector<std::string>& values) {
    if (!object_.contains(name)) return;
    const json& field = object_[name];
    const auto is_text = [](const json& item) { return item.is_string(); };
    if (!field.is_array() || !std::all_of(field.begin(), field.end(), is_text))
      fail(name, field, "a list of strings");
    values = field.get<std::vector<std::string>>();
  }
  void operator()(const char* name, std::vector<int64_t>& values) {
    if (!object_.contains(name)) return;
    const json& field = object_[name];
    const auto is_count = [](const json& item) {
      return item.is_number_integer() && !(item.is_number_unsigned() && item.get<uint64_t>() > kLargest);
    };
    if (!field.is_array() || !std::all_of(field.begin(), field.end(), is_count))
      fail(name, field, "a list of whole numbers");
    values = field.get<std::vector<int64_t>>();
  }
  template <typename Record>
  void operator()(const char* name, std::vector<Record>& records) {
    if (!object_.contains(name)) return;
    const json& field = object_[name];
    const auto is_object = [](const json& item) { return item.is_object(); };
    if (!field.is_array() || !std::all_of(field.begin(), field.end(), is_object))
      fail(name, field, "a list of objects");
    for (const json& item : field) {
      Reader reader(item, place_);
      visit_fields(records.emplace_back(), reader);
    }
  }
  void operator()(const char* name, std::optional<double>& value) {
    if (!object_.contains(name)) return;
    if (object_[name].is_null())
      value = std::numeric_limits<double>::quiet_NaN();
    else
      (*this)(name, value.emplace());
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (!object_.contains(name) || object_[name].is_null()) return;
    (*this)(name, value.emplace());
  }
  template <typename Record>
  void operator()(const char* name, Record& record) {
    const json& field = required(name);
    if (!field.is_object()) fail(name, field, "an object");
    Reader reader(field, place_);
    visit_fields(record, reader);
  }

 private:
  static constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();

  const json& required(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end()) throw UserError("{}: there is no field '{}'", place_, name);
    return *found;
  }
  [[noreturn]] void fail(const char* name, const json& found, std::string_view expected) const {
    std::string text = found.dump(-1, ' ', true, json::error_handler_t::replace);
    if (text.size() > 40) text = text.substr(0, 40) + "...";
    throw UserError("{}: '{}' is {} where {} is expected", place_, name, text, expected);
  }

  const json& object_;
  const std::string& place_;
};

template <typename Record>
Record read_record(const json& object, const std::string& place) {
  if (!object.is_object()) throw UserError("{}: this is no JSON object", place);
  Record record;
  Reader reader(object, place);
  visit_fields(record, reader);
  return record;
}

}  // namespace

std::string to_json_line(const StepRecord& record) { return to_line(record, "step"); }
std::string to_json_line(const EvalRecord& record) { return to_line(record, "eval"); }
std::string to_json_text(const RunSummary& summary) {
  return nlohmann::ordered_json::parse(to_line(summary, "")).dump(2) + "\n";
}

StepRecord step_from_json(const json& object, const std::string& place) {
  return read_record<StepRecord>(object, place);
}
EvalRecord eval_from_json(const json& object, const std::string& place) {
  return read_record<EvalRecord>(object, place);
}
RunSummary summary_from_json(const json& object, const std::string& place) {
  return read_record<RunSummary>(object, place);
}

}  // namespace lockstep
