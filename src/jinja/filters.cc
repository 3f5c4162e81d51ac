#include "jinja/filters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace lockstep {
namespace {

using Arguments = JinjaArguments;

constexpr size_t kMostText = size_t{64} << 20;

const JinjaValue* argument(const Arguments& given, size_t place, std::string_view name = {}) {
  if (place < given.positional.size()) return &given.positional[place];
  for (const auto& [key, value] : given.named)
    if (key == name) return &value;
  return nullptr;
}

JinjaValue call_method(const JinjaValue& value, std::string_view name, const Arguments& given) {
  return method_of(value, name).callable()(given);
}

JinjaValue text_filter(const JinjaValue& value, std::string_view method) {
  return call_method(JinjaValue(value.printed()), method, {});
}

// "a.b.0" of a value.
JinjaValue attribute_of(JinjaValue value, const JinjaValue& path) {
  if (path.is_whole()) return member_of(value, path);
  const std::string& names = path.text();
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find('.', at), names.size());
    value = member_of(value, JinjaValue(names.substr(at, end - at)));
    at = end + 1;
  }
  return value;
}

Arguments from(const Arguments& given, size_t first) {
  Arguments rest;
  for (size_t i = first; i < given.positional.size(); ++i) rest.positional.push_back(given.positional[i]);
  return rest;
}

// select, reject, selectattr, rejectattr: of elements, or of what they have at args[0].
JinjaValue selected(const JinjaValue& value, const Arguments& given, bool by_attribute, bool keep) {
  const size_t test = by_attribute ? 1 : 0;
  if (by_attribute && given.positional.empty()) throw UserError("selectattr: the attribute is missing");
  JinjaList out;
  for (const JinjaValue& element : value.elements()) {
    const JinjaValue tested = by_attribute ? attribute_of(element, given.positional[0]) : element;
    const bool holds = given.positional.size() > test
                           ? apply_test(given.positional[test].text(), tested, from(given, test + 1))
                           : tested.truth();
    if (holds == keep) out.push_back(element);
  }
  return {std::move(out)};
}

JinjaValue mapped(const JinjaValue& value, const Arguments& given) {
  JinjaList out;
  const JinjaValue* attribute = nullptr;
  const JinjaValue* otherwise = nullptr;
  for (const auto& [name, named] : given.named) {
    if (name == "attribute") attribute = &named;
    if (name == "default") otherwise = &named;
  }
  for (const JinjaValue& element : value.elements()) {
    if (attribute != nullptr) {
      JinjaValue found = attribute_of(element, *attribute);
      out.push_back(found.is_undefined() && otherwise != nullptr ? *otherwise : std::move(found));
    } else {
      if (given.positional.empty()) throw UserError("map: name a filter, or an attribute");
      out.push_back(apply_filter(given.positional[0].text(), element, from(given, 1)));
    }
  }
  return {std::move(out)};
}

JinjaValue joined(const JinjaValue& value, const Arguments& given) {
  const JinjaValue* separator = argument(given, 0, "d");
  const JinjaValue* attribute = argument(given, 1, "attribute");
  std::string out;
  bool first = true;
  for (const JinjaValue& element : value.elements()) {
    if (!first && separator != nullptr) out += separator->printed();
    first = false;
    out += (attribute == nullptr ? element : attribute_of(element, *attribute)).printed();
    if (out.size() > kMostText) throw UserError("join: the text grows beyond 64 MiB");
  }
  return {std::move(out)};
}

JinjaValue indented(const JinjaValue& value, const Arguments& given) {
  const JinjaValue* width = argument(given, 0, "width");
  const JinjaValue* first = argument(given, 1, "first");
  const JinjaValue* blank = argument(given, 2, "blank");
  const std::string by =
      width != nullptr && width->is_text()
          ? width->text()
          : std::string(
                static_cast<size_t>(std::clamp<int64_t>(width == nullptr ? 4 : width->whole(), 0, 1000)),
                ' ');
  std::string out;
  std::string_view text = value.text();
  for (bool begins = true;; begins = false) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool wanted =
        begins ? first != nullptr && first->truth() : !line.empty() || (blank != nullptr && blank->truth());
    if (!begins) out += '\n';
    if (wanted) out += by;
    out += line;
    if (out.size() > kMostText) throw UserError("indent: the text grows beyond 64 MiB");
    if (end == std::string_view::npos) return {std::move(out)};
    text.remove_prefix(end + 1);
  }
}

JinjaValue as_whole(const JinjaValue& value, const Arguments& given) {
  const JinjaValue* otherwise = argument(given, 0, "default");
  if (value.is_whole()) return {value.whole()};
  if (value.is_number() && std::fabs(value.number()) < 9e18) return {static_cast<int64_t>(value.number())};
  if (value.is_text()) {
    const std::string_view text = stripped(value.text(), true, true);
    int64_t whole = 0;
    const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
    const auto end = std::from_chars(begin, text.data() + text.size(), whole);
    if (!text.empty() && end.ec == std::errc() && end.ptr == text.data() + text.size()) return {whole};
  }
  return otherwise == nullptr ? JinjaValue(int64_t{0}) : *otherwise;
}

JinjaValue as_float(const JinjaValue& value, const Arguments& given) {
  const JinjaValue* otherwise = argument(given, 0, "default");
  if (value.is_number()) return {value.number()};
  if (value.is_text()) {
    const std::string_view text = stripped(value.text(), true, true);
    double number = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && end.ec == std::errc() && end.ptr == text.data() + text.size()) return {number};
  }
  return otherwise == nullptr ? JinjaValue(0.0) : *otherwise;
}

JinjaValue sorted(const JinjaValue& value, const Arguments& given) {
  const JinjaValue* reverse = argument(given, 0, "reverse");
  const JinjaValue* attribute = argument(given, 2, "attribute");
  JinjaList list = value.elements();
  const bool down = reverse != nullptr && reverse->truth();
  const auto key = [&](const JinjaValue& element) {
    const JinjaValue by = attribute == nullptr ? element : attribute_of(element, *attribute);
    return by.is_text() ? call_method(by, "lower", {}) : by;  // case_sensitive=False is the default
  };
  std::stable_sort(list.begin(), list.end(), [&](const JinjaValue& a, const JinjaValue& b) {
    return down ? key(b).less_than(key(a)) : key(a).less_than(key(b));
  });
  return {std::move(list)};
}

JinjaValue to_json(const JinjaValue& value, const Arguments& given) {
  const JinjaValue* indent = nullptr;
  for (const auto& [name, named] : given.named) {
    if (name == "indent")
      indent = &named;
    else if (name != "ensure_ascii" || named.truth())
      throw UserError("tojson takes indent only, not {}", name);
  }
  if (!given.positional.empty()) throw UserError("tojson takes indent by its name only");
  return {json_text(value, indent == nullptr || indent->is_none() ? -1 : indent->whole())};
}

JinjaValue unique(const JinjaValue& value, const Arguments&) {
  JinjaList out;
  for (const JinjaValue& element : value.elements())
    if (std::find(out.begin(), out.end(), element) == out.end()) out.push_back(element);
  return {std::move(out)};
}

JinjaValue reversed(const JinjaValue& value, const Arguments&) {
  JinjaList list = value.elements();
  std::reverse(list.begin(), list.end());
  if (!value.is_text()) return {std::move(list)};
  std::string text;
  for (const JinjaValue& point : list) text += point.text();
  return {std::move(text)};
}

JinjaValue defaulted(const JinjaValue& value, const Arguments& given) {
  const JinjaValue* otherwise = argument(given, 0, "default_value");
  const JinjaValue* falsy = argument(given, 1, "boolean");
  const bool replaces = value.is_undefined() || (falsy != nullptr && falsy->truth() && !value.truth());
  if (!replaces) return value;
  return otherwise == nullptr ? JinjaValue("") : *otherwise;
}

JinjaValue end_of(const JinjaValue& value, bool first) {
  const JinjaList list = value.elements();
  if (list.empty()) return JinjaValue::Undefined{first ? "first" : "last"};
  return first ? list.front() : list.back();
}

struct FilterEntry {
  std::string_view name;
  JinjaValue (*apply)(const JinjaValue& value, const Arguments& given);
};

constexpr auto kFilters = std::to_array<FilterEntry>({
    {"trim",
     [](const JinjaValue& v, const Arguments& a) { return call_method(JinjaValue(v.printed()), "strip", a); }},
    {"length", [](const JinjaValue& v, const Arguments&) { return JinjaValue(v.length()); }},
    {"count", [](const JinjaValue& v, const Arguments&) { return JinjaValue(v.length()); }},
    {"tojson", to_json},
    {"join", joined},
    {"default", defaulted},
    {"d", defaulted},
    {"lower", [](const JinjaValue& v, const Arguments&) { return text_filter(v, "lower"); }},
    {"upper", [](const JinjaValue& v, const Arguments&) { return text_filter(v, "upper"); }},
    {"capitalize", [](const JinjaValue& v, const Arguments&) { return text_filter(v, "capitalize"); }},
    {"title", [](const JinjaValue& v, const Arguments&) { return text_filter(v, "title"); }},
    {"replace", [](const JinjaValue& v, const Arguments& a) { return call_method(v, "replace", a); }},
    {"first", [](const JinjaValue& v, const Arguments&) { return end_of(v, true); }},
    {"last", [](const JinjaValue& v, const Arguments&) { return end_of(v, false); }},
    {"list", [](const JinjaValue& v, const Arguments&) { return JinjaValue(v.elements()); }},
    {"string", [](const JinjaValue& v, const Arguments&) { return JinjaValue(v.printed()); }},
    {"safe", [](const JinjaValue& v, const Arguments&) { return v; }},
    {"int", as_whole},
    {"float", as_float},
    {"items",
     [](const JinjaValue& v, const Arguments& a) {
       return v.is_undefined() ? JinjaValue(JinjaList{}) : call_method(v, "items", a);
     }},
    {"select", [](const JinjaValue& v, const Arguments& a) { return selected(v, a, false, true); }},
    {"reject", [](const JinjaValue& v, const Arguments& a) { return selected(v, a, false, false); }},
    {"selectattr", [](const JinjaValue& v, const Arguments& a) { return selected(v, a, true, true); }},
    {"rejectattr", [](const JinjaValue& v, const Arguments& a) { return selected(v, a, true, false); }},
    {"map", mapped},
    {"indent", indented},
    {"reverse", reversed},
    {"sort", sorted},
    {"unique", unique},
    {"abs",
     [](const JinjaValue& v, const Arguments&) {
       return v.is_whole() ? JinjaValue(v.whole() < 0 ? -v.whole() : v.whole()) : JinjaValue(std::fabs(v.number()));
     }},
});

bool same(const JinjaValue& value, const Arguments& given) {
  if (given.positional.size() != 1) throw UserError("a test takes one argument");
  return value == given.positional[0];
}

struct TestEntry {
  std::string_view name;
  bool (*holds)(const JinjaValue& value, const Arguments& given);
};

constexpr auto kTests = std::to_array<TestEntry>({
    {"defined", [](const JinjaValue& v, const Arguments&) { return !v.is_undefined(); }},
    {"undefined", [](const JinjaValue& v, const Arguments&) { return v.is_undefined(); }},
    {"none", [](const JinjaValue& v, const Arguments&) { return v.is_none(); }},
    {"string", [](const JinjaValue& v, const Arguments&) { return v.is_text(); }},
    {"mapping", [](const JinjaValue& v, const Arguments&) { return v.is_dict(); }},
    {"iterable",
     [](const JinjaValue& v, const Arguments&) {
       return v.is_text() || v.is_list() || v.is_dict() || v.is_undefined();
     }},
    {"sequence",
     [](const JinjaValue& v, const Arguments&) {
       return v.is_text() || v.is_list() || v.is_dict() || v.is_undefined();
     }},
    {"number", [](const JinjaValue& v, const Arguments&) { return v.is_number(); }},
    {"integer", [](const JinjaValue& v, const Arguments&) { return v.is_whole() && !v.is_bool(); }},
    {"float", [](const JinjaValue& v, const Arguments&) { return v.is_number() && !v.is_whole(); }},
    {"boolean", [](const JinjaValue& v, const Arguments&) { return v.is_bool(); }},
    {"true", [](const JinjaValue& v, const Arguments&) { return v.is_bool() && v.truth(); }},
    {"false", [](const JinjaValue& v, const Arguments&) { return v.is_bool() && !v.truth(); }},
    {"callable", [](const JinjaValue& v, const Arguments&) { return v.is_callable(); }},
    {"odd", [](const JinjaValue& v, const Arguments&) { return v.whole() % 2 != 0; }},
    {"even", [](const JinjaValue& v, const Arguments&) { return v.whole() % 2 == 0; }},
    {"equalto", same},
    {"eq", same},
    {"sameas", same},
    {"ne", [](const JinjaValue& v, const Arguments& a) { return !same(v, a); }},
    {"in",
     [](const JinjaValue& v, const Arguments& a) {
       if (a.positional.size() != 1) throw UserError("the test in takes one argument");
       return a.positional[0].contains(v);
     }},
});

template <typename Entries>
const auto* entry(const Entries& entries, std::string_view name) {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace

bool is_jinja_filter(std::string_view name) { return entry(kFilters, name) != nullptr; }
bool is_jinja_test(std::string_view name) { return entry(kTests, name) != nullptr; }

JinjaValue apply_filter(std::string_view name, const JinjaValue& value, const Arguments& given) {
  const FilterEntry* filter = entry(kFilters, name);
  if (filter == nullptr) throw UserError("the filter '{}' is not supported", name);
  return filter->apply(value, given);
}

bool apply_test(std::string_view name, const JinjaValue& value, const Arguments& given) {
  const TestEntry* test = entry(kTests, name);
  if (test == nullptr) throw UserError("the test '{}' is not supported", name);
  return test->holds(value, given);
}

}  // namespace lockstep
