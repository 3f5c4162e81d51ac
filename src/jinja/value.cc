#include "jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lockstep {
namespace {

// Python's repr of a float: the shortest digits that read back as it, with a point or an exponent.
std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char digits[40];
  const double size = std::fabs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = std::to_chars(digits, digits + sizeof digits, number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(digits, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

[[noreturn]] void refuse_type(std::string_view wanted, const JinjaValue& value) {
  if (value.is_undefined()) throw UserError("'{}' is undefined", value.undefined_name());
  throw UserError("{} is wanted where {} stands", wanted, value.type_name());
}

std::string quoted_text(std::string_view text) {
  const char quote =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    switch (c) {
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\\': out += "\\\\"; break;
      default:
        if (c == quote)
          out += fmt::format("\\{}", c);
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
          out += c;
    }
  }
  return out + quote;
}

}  // namespace

const JinjaValue* JinjaDict::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

void JinjaDict::put(std::string_view key, JinjaValue value) {
  for (auto& [name, held] : members)
    if (name == key) {
      held = std::move(value);
      return;
    }
  members.emplace_back(std::string(key), std::move(value));
}

JinjaValue::JinjaValue(JinjaList list) : value_(std::make_shared<const JinjaList>(std::move(list))) {}
JinjaValue::JinjaValue(JinjaDict dict) : value_(std::make_shared<JinjaDict>(std::move(dict))) {}
JinjaValue::JinjaValue(JinjaCallable callable)
    : value_(std::make_shared<const JinjaCallable>(std::move(callable))) {}

int64_t JinjaValue::whole() const {
  if (const auto* number = std::get_if<int64_t>(&value_)) return *number;
  if (const auto* truth = std::get_if<bool>(&value_)) return *truth ? 1 : 0;
  refuse_type("a whole number", *this);
}

double JinjaValue::number() const {
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  if (!is_whole()) refuse_type("a number", *this);
  return static_cast<double>(whole());
}

const std::string& JinjaValue::text() const {
  if (!is_text()) refuse_type("a text", *this);
  return *std::get<Text>(value_);
}

const JinjaList& JinjaValue::list() const {
  if (!is_list()) refuse_type("a list", *this);
  return *std::get<List>(value_);
}

JinjaDict& JinjaValue::dict() const {
  if (!is_dict()) refuse_type("a mapping", *this);
  return *std::get<Dict>(value_);
}

const JinjaCallable& JinjaValue::callable() const {
  if (!is_callable()) refuse_type("something that can be called", *this);
  return *std::get<Callable>(value_);
}

bool JinjaValue::truth() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return number() != 0;
  if (is_text()) return !text().empty();
  if (is_list()) return !list().empty();
  if (is_dict()) return dict().is_namespace || !dict().members.empty();
  return true;
}

std::string_view JinjaValue::type_name() const {
  if (is_undefined()) return "something undefined";
  if (is_none()) return "none";
  if (is_bool()) return "true or false";
  if (is_whole()) return "a whole number";
  if (is_number()) return "a number";
  if (is_text()) return "a text";
  if (is_list()) return "a list";
  if (is_dict()) return "a mapping";
  return "a function";
}

std::string JinjaValue::printed() const {
  if (is_undefined()) return "";
  if (is_text()) return text();
  return quoted();
}

std::string JinjaValue::quoted() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "None";
  if (is_bool()) return truth() ? "True" : "False";
  if (is_whole()) return std::to_string(whole());
  if (is_number()) return float_text(number());
  if (is_text()) return quoted_text(text());
  std::string out;
  if (is_list()) {
    for (const JinjaValue& element : list()) out += (out.empty() ? "" : ", ") + element.quoted();
    return "[" + out + "]";
  }
  if (is_dict()) {
    for (const auto& [key, value] : dict().members)
      out += (out.empty() ? "" : ", ") + quoted_text(key) + ": " + value.quoted();
    return "{" + out + "}";
  }
  throw UserError("a function cannot be printed");
}

JinjaList JinjaValue::elements() const {
  if (is_list()) return list();
  if (is_undefined()) return {};
  JinjaList elements;
  if (is_text())
    for (const std::string_view point : code_points(text())) elements.emplace_back(point);
  else if (is_dict())
    for (const auto& [key, value] : dict().members) elements.emplace_back(key);
  else
    refuse_type("a list", *this);
  return elements;
}

int64_t JinjaValue::length() const {
  if (is_text()) return std::ssize(code_points(text()));
  if (is_list()) return std::ssize(list());
  if (is_dict()) return std::ssize(dict().members);
  if (is_undefined()) return 0;
  refuse_type("a text, list or mapping", *this);
}

bool JinjaValue::contains(const JinjaValue& element) const {
  if (is_undefined()) return false;
  if (is_text()) return text().find(element.text()) != std::string::npos;
  if (is_dict()) return element.is_text() && dict().find(element.text()) != nullptr;
  if (!is_list()) refuse_type("a text, list or mapping", *this);
  return std::find(list().begin(), list().end(), element) != list().end();
}

bool JinjaValue::operator==(const JinjaValue& other) const {
  if (is_number() && other.is_number()) {
    if (is_whole() && other.is_whole()) return whole() == other.whole();
    return number() == other.number();
  }
  if (is_text() && other.is_text()) return text() == other.text();
  if (is_list() && other.is_list()) return list() == other.list();
  if (is_dict() && other.is_dict()) {
    const auto& members = dict().members;
    if (members.size() != other.dict().members.size()) return false;
    return std::all_of(members.begin(), members.end(), [&](const auto& member) {
      const JinjaValue* held = other.dict().find(member.first);
      return held != nullptr && *held == member.second;
    });
  }
  if (is_undefined()) return other.is_undefined();
  return is_none() && other.is_none();
}

bool JinjaValue::less_than(const JinjaValue& other) const {
  if (is_number() && other.is_number()) {
    if (is_whole() && other.is_whole()) return whole() < other.whole();
    return number() < other.number();
  }
  // Bytes of UTF-8 are in the order of the code points.
  if (is_text() && other.is_text()) return text() < other.text();
  throw UserError("{} and {} cannot be compared by size", type_name(), other.type_name());
}

std::vector<std::string_view> code_points(std::string_view text) {
  std::vector<std::string_view> points;
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    size_t bytes = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    bytes = std::min(bytes, text.size() - at);
    for (size_t i = 1; i < bytes; ++i)
      if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) bytes = 1;
    points.push_back(text.substr(at, bytes));
    at += bytes;
  }
  return points;
}

namespace {

// str.isspace of Python.
bool is_space(std::string_view point) {
  if (point.size() == 1) {
    const auto c = static_cast<unsigned char>(point[0]);
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
  }
  constexpr std::string_view kSpaces[] = {
      "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
      "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  return std::find(std::begin(kSpaces), std::end(kSpaces), point) != std::end(kSpaces);
}

}  // namespace

std::string_view stripped(std::string_view text, bool left, bool right, std::string_view characters) {
  const std::vector<std::string_view> points = code_points(text), set = code_points(characters);
  const auto goes = [&](std::string_view point) {
    return characters.empty() ? is_space(point) : std::find(set.begin(), set.end(), point) != set.end();
  };
  size_t begin = 0, end = points.size();
  while (left && begin < end && goes(points[begin])) ++begin;
  while (right && begin < end && goes(points[end - 1])) --end;
  if (begin == end) return {};
  const size_t first = static_cast<size_t>(points[begin].data() - text.data());
  return text.substr(
      first, static_cast<size_t>(points[end - 1].data() - text.data()) + points[end - 1].size() - first);
}

}  // namespace lockstep
