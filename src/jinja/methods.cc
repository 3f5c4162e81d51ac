// Methods of texts, lists and mappings, as Python has them.
#include <algorithm>
#include <array>

#include "jinja/filters.h"

namespace lockstep {
namespace {

using Arguments = JinjaArguments;

const JinjaValue* argument(const Arguments& given, size_t place, std::string_view name = {}) {
  if (place < given.positional.size()) return &given.positional[place];
  for (const auto& [key, value] : given.named)
    if (!name.empty() && key == name) return &value;
  return nullptr;
}

const JinjaValue& required(const Arguments& given, size_t place) {
  const JinjaValue* value = argument(given, place);
  if (value == nullptr) throw UserError("an argument is missing");
  return *value;
}

void take_at_most(const Arguments& given, size_t most, std::string_view method) {
  if (given.positional.size() + given.named.size() > most)
    throw UserError("{}() takes at most {} arguments", method, most);
}

JinjaValue strip(const std::string& text, const Arguments& given, bool left, bool right) {
  take_at_most(given, 1, "strip");
  const JinjaValue* set = argument(given, 0);
  if (set != nullptr && !set->is_none() && set->text().empty()) return {text};
  return {stripped(text, left, right, set == nullptr || set->is_none() ? "" : set->text())};
}

// str.split without a separator: by runs of whitespace.
JinjaList split_blank(std::string_view text, int64_t most) {
  JinjaList parts;
  text = stripped(text, true, false);
  while (!text.empty()) {
    if (most >= 0 && std::ssize(parts) == most) {
      parts.emplace_back(stripped(text, false, true));
      break;
    }
    size_t end = 0;
    for (const std::string_view point : code_points(text)) {
      if (stripped(point, true, true).empty()) break;
      end += point.size();
    }
    parts.emplace_back(text.substr(0, end));
    text = stripped(text.substr(end), true, false);
  }
  return parts;
}

JinjaValue split(const std::string& text, const Arguments& given) {
  take_at_most(given, 2, "split");
  const JinjaValue* separator = argument(given, 0, "sep");
  const JinjaValue* limit = argument(given, 1, "maxsplit");
  const int64_t most = limit == nullptr ? -1 : limit->whole();
  if (separator == nullptr || separator->is_none()) return {split_blank(text, most)};
  const std::string& by = separator->text();
  if (by.empty()) throw UserError("split(): the separator is empty");
  JinjaList parts;
  size_t at = 0;
  for (size_t found = text.find(by); found != std::string::npos; found = text.find(by, at)) {
    if (most >= 0 && std::ssize(parts) == most) break;
    parts.emplace_back(text.substr(at, found - at));
    at = found + by.size();
  }
  parts.emplace_back(text.substr(at));
  return {std::move(parts)};
}

JinjaValue rsplit(const std::string& text, const Arguments& given) {
  take_at_most(given, 2, "rsplit");
  const JinjaValue* limit = argument(given, 1, "maxsplit");
  const std::string& by = required(given, 0).text();
  if (by.empty()) throw UserError("rsplit(): the separator is empty");
  JinjaList parts;
  std::string_view left = text;
  while (limit == nullptr || limit->whole() < 0 || std::ssize(parts) < limit->whole()) {
    const size_t found = left.rfind(by);
    if (found == std::string_view::npos) break;
    parts.emplace_back(left.substr(found + by.size()));
    left = left.substr(0, found);
  }
  parts.emplace_back(left);
  std::reverse(parts.begin(), parts.end());
  return {std::move(parts)};
}

JinjaValue replace(const std::string& text, const Arguments& given) {
  take_at_most(given, 3, "replace");
  const std::string &from = required(given, 0).text(), &to = required(given, 1).text();
  const JinjaValue* limit = argument(given, 2, "count");
  int64_t left = limit == nullptr || limit->is_none() ? -1 : limit->whole();
  if (from.empty()) throw UserError("replace(): what is replaced is empty");
  std::string out;
  size_t at = 0;
  for (size_t found = text.find(from); found != std::string::npos && left != 0; found = text.find(from, at)) {
    out += text.substr(at, found - at) + to;
    at = found + from.size();
    --left;
    if (out.size() > (size_t{64} << 20)) throw UserError("replace(): the text grows beyond 64 MiB");
  }
  return {out + text.substr(at)};
}

bool affixed(const std::string& text, const Arguments& given, bool front) {
  take_at_most(given, 1, front ? "startswith" : "endswith");
  const JinjaValue& affix = required(given, 0);
  const auto has = [&](const JinjaValue& part) {
    return front ? text.starts_with(part.text()) : text.ends_with(part.text());
  };
  if (!affix.is_list()) return has(affix);
  return std::any_of(affix.list().begin(), affix.list().end(), has);
}

std::string in_case(const std::string& text, bool upper, size_t from = 0) {
  std::string out = text;
  for (size_t i = from; i < out.size(); ++i) {
    const char c = out[i];
    if (static_cast<unsigned char>(c) >= 0x80)
      throw UserError("upper and lower case are known of ASCII letters only, and '{}' has others",
                      text.substr(0, 40));
    if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') out[i] = static_cast<char>(c ^ 0x20);
  }
  return out;
}

JinjaValue capitalize(const std::string& text, const Arguments&) {
  if (text.empty()) return {text};
  return {in_case(text.substr(0, 1), true) + in_case(text.substr(1), false)};
}

JinjaValue title(const std::string& text, const Arguments&) {
  std::string out = in_case(text, false);
  bool begins = true;
  for (char& c : out) {
    const bool letter = c >= 'a' && c <= 'z';
    if (letter && begins) c = static_cast<char>(c ^ 0x20);
    begins = !letter;
  }
  return {out};
}

JinjaValue find(const std::string& text, const Arguments& given) {
  take_at_most(given, 1, "find");
  const size_t found = text.find(required(given, 0).text());
  if (found == std::string::npos) return {int64_t{-1}};
  return {static_cast<int64_t>(code_points(std::string_view(text).substr(0, found)).size())};
}

JinjaValue count(const std::string& text, const Arguments& given) {
  const std::string& part = required(given, 0).text();
  if (part.empty()) return {std::ssize(code_points(text)) + 1};
  int64_t number = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++number;
  return {number};
}

JinjaValue splitlines(const std::string& text, const Arguments&) {
  JinjaList lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find_first_of("\n\r", at);
    lines.emplace_back(text.substr(at, end == std::string::npos ? end : end - at));
    if (end == std::string::npos) break;
    at = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  return {std::move(lines)};
}

JinjaValue join(const std::string& text, const Arguments& given) {
  std::string out;
  bool first = true;
  for (const JinjaValue& part : required(given, 0).elements()) {
    out += (first ? "" : text) + part.text();
    if (out.size() > (size_t{64} << 20)) throw UserError("join(): the text grows beyond 64 MiB");
    first = false;
  }
  return {std::move(out)};
}

JinjaValue is_digits(const std::string& text, const Arguments&) {
  return {!text.empty() &&
          std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })};
}

struct TextMethod {
  std::string_view name;
  JinjaValue (*call)(const std::string& text, const Arguments& given);
};

constexpr auto kTextMethods = std::to_array<TextMethod>({
    {"strip", [](const std::string& t, const Arguments& a) { return strip(t, a, true, true); }},
    {"lstrip", [](const std::string& t, const Arguments& a) { return strip(t, a, true, false); }},
    {"rstrip", [](const std::string& t, const Arguments& a) { return strip(t, a, false, true); }},
    {"split", split},
    {"rsplit", rsplit},
    {"replace", replace},
    {"startswith", [](const std::string& t, const Arguments& a) { return JinjaValue(affixed(t, a, true)); }},
    {"endswith", [](const std::string& t, const Arguments& a) { return JinjaValue(affixed(t, a, false)); }},
    {"upper", [](const std::string& t, const Arguments&) { return JinjaValue(in_case(t, true)); }},
    {"lower", [](const std::string& t, const Arguments&) { return JinjaValue(in_case(t, false)); }},
    {"capitalize", capitalize},
    {"title", title},
    {"find", find},
    {"count", count},
    {"splitlines", splitlines},
    {"join", join},
    {"isdigit", is_digits},
    {"removeprefix",
     [](const std::string& t, const Arguments& a) {
       const std::string& part = required(a, 0).text();
       return JinjaValue(t.starts_with(part) ? t.substr(part.size()) : t);
     }},
    {"removesuffix",
     [](const std::string& t, const Arguments& a) {
       const std::string& part = required(a, 0).text();
       return JinjaValue(t.ends_with(part) ? t.substr(0, t.size() - part.size()) : t);
     }},
});

JinjaValue dict_method(const JinjaValue& value, std::string_view name) {
  if (name == "get")
    return {JinjaCallable([value](const Arguments& given) -> JinjaValue {
      if (const JinjaValue* held = value.dict().find(required(given, 0).text())) return *held;
      const JinjaValue* otherwise = argument(given, 1, "default");
      return otherwise == nullptr ? JinjaValue() : *otherwise;
    })};
  if (name != "items" && name != "keys" && name != "values")
    return {JinjaValue::Undefined{std::string(name)}};
  return {JinjaCallable([value, name = std::string(name)](const Arguments&) -> JinjaValue {
    JinjaList all;
    for (const auto& [key, held] : value.dict().members) {
      if (name == "items")
        all.emplace_back(JinjaList{JinjaValue(key), held});
      else
        all.push_back(name == "keys" ? JinjaValue(key) : held);
    }
    return {std::move(all)};
  })};
}

JinjaValue list_method(const JinjaValue& value, std::string_view name) {
  if (name != "index" && name != "count") return {JinjaValue::Undefined{std::string(name)}};
  return {JinjaCallable([value, counts = name == "count"](const Arguments& given) -> JinjaValue {
    const JinjaList& list = value.list();
    const JinjaValue& wanted = required(given, 0);
    if (counts) return {static_cast<int64_t>(std::count(list.begin(), list.end(), wanted))};
    const auto found = std::find(list.begin(), list.end(), wanted);
    if (found == list.end()) throw UserError("index(): the list has no such element");
    return {static_cast<int64_t>(found - list.begin())};
  })};
}

}  // namespace

JinjaValue method_of(const JinjaValue& value, std::string_view name) {
  if (value.is_dict()) return dict_method(value, name);
  if (value.is_list()) return list_method(value, name);
  if (value.is_text())
    for (const TextMethod& method : kTextMethods)
      if (method.name == name)
        return {JinjaCallable(
            [value, &method](const Arguments& given) { return method.call(value.text(), given); })};
  return {JinjaValue::Undefined{std::string(name)}};
}

JinjaValue member_of(const JinjaValue& value, const JinjaValue& key) {
  if (value.is_undefined()) throw UserError("'{}' is undefined", value.undefined_name());
  if (value.is_dict() && key.is_text()) {
    const JinjaValue* held = value.dict().find(key.text());
    return held != nullptr ? *held : JinjaValue::Undefined{key.text()};
  }
  if ((value.is_list() || value.is_text()) && key.is_whole()) {
    const int64_t size = value.length();
    const int64_t index = key.whole() < 0 ? key.whole() + size : key.whole();
    if (index < 0 || index >= size) return JinjaValue::Undefined{std::to_string(key.whole())};
    if (value.is_list()) return value.list()[static_cast<size_t>(index)];
    return {code_points(value.text())[static_cast<size_t>(index)]};
  }
  return JinjaValue::Undefined{key.printed()};
}

}  // namespace lockstep
