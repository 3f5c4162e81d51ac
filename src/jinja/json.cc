// Values from and to JSON, as Python's json module writes it.
#include <nlohmann/json.hpp>

#include "jinja/value.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kDeepest = 100;

void put_text(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        else
          out += c;
    }
  }
  out += '"';
}

class JsonPrinter {
 public:
  explicit JsonPrinter(int64_t indent) : indent_(indent) {}

  void put(const JinjaValue& value, int64_t depth, std::string& out) const {
    if (depth > kDeepest) throw UserError("tojson: the value is nested more than {} deep", kDeepest);
    if (value.is_text()) return put_text(value.text(), out);
    if (value.is_none()) {
      out += "null";
    } else if (value.is_bool()) {
      out += value.truth() ? "true" : "false";
    } else if (value.is_number()) {
      out += value.quoted();
    } else if (value.is_list()) {
      const JinjaList& list = value.list();
      put_all(list.size(), "[]", depth, out, [&](size_t i) { put(list[i], depth + 1, out); });
    } else if (value.is_dict()) {
      const auto& members = value.dict().members;
      put_all(members.size(), "{}", depth, out, [&](size_t i) {
        put_text(members[i].first, out);
        out += ": ";
        put(members[i].second, depth + 1, out);
      });
    } else {
      throw UserError("tojson: {} cannot be written", value.type_name());
    }
  }

 private:
  template <typename Put>
  void put_all(size_t count, std::string_view brackets, int64_t depth, std::string& out,
               const Put& element) const {
    out += brackets[0];
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) out += indent_ < 0 ? ", " : ",";
      new_line(depth + 1, out);
      element(i);
    }
    if (count > 0) new_line(depth, out);
    out += brackets[1];
  }
  void new_line(int64_t depth, std::string& out) const {
    if (indent_ < 0) return;
    out += '\n';
    out.append(static_cast<size_t>(indent_ * depth), ' ');
  }

  int64_t indent_;
};

JinjaValue value_of(const Json& json, int depth) {
  if (depth > kDeepest) throw UserError("JSON nested more than {} deep", kDeepest);
  switch (json.type()) {
    case Json::value_t::string: return {json.get<std::string>()};
    case Json::value_t::boolean: return {json.get<bool>()};
    case Json::value_t::number_integer: return {json.get<int64_t>()};
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return {json.get<double>()};
      return {json.get<int64_t>()};
    case Json::value_t::number_float: return {json.get<double>()};
    case Json::value_t::array: {
      JinjaList list;
      for (const Json& element : json) list.push_back(value_of(element, depth + 1));
      return {std::move(list)};
    }
    case Json::value_t::object: {
      JinjaDict dict;
      for (const auto& [key, value] : json.items())
        dict.members.emplace_back(key, value_of(value, depth + 1));
      return {std::move(dict)};
    }
    default: return {};
  }
}

}  // namespace

std::string json_text(const JinjaValue& value, int64_t indent) {
  std::string out;
  JsonPrinter(std::min<int64_t>(indent, 16)).put(value, 0, out);
  return out;
}

JinjaValue value_of_json(std::string_view json) {
  try {
    // Brackets are counted before the parser recurses into them.
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < json.size(); ++i) {
      const char c = json[i];
      if (quoted) {
        if (c == '\\') ++i;
        quoted = c != '"';
      } else if (c == '"') {
        quoted = true;
      } else if (c == '[' || c == '{') {
        if (++depth > kDeepest) throw UserError("JSON nested more than {} deep", kDeepest);
      } else if (c == ']' || c == '}') {
        --depth;
      }
    }
    return value_of(Json::parse(json), 0);
  } catch (const nlohmann::json::exception& error) {
    throw UserError("no JSON: {}", error.what());
  }
}

}  // namespace lockstep
