#include "graph/attributes.h"

#include <array>
#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

// A double always prints with a point, an exponent, inf or nan, so that it parses back as a double.
std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

struct Printer {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(DType value) const { return std::string(name_of(value)); }
  std::string operator()(const std::vector<int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ","));
  }
  std::string operator()(const std::vector<double>& value) const {
    std::string out = "[";
    for (size_t i = 0; i < value.size(); ++i) out += (i == 0 ? "" : ",") + number_text(value[i]);
    return out + "]";
  }
};

template <typename T>
const T& typed(const Attributes& attributes, std::string_view name) {
  const Attribute* found = attributes.find(name);
  if (found == nullptr) throw InternalError("attribute {} is missing", name);
  const T* value = std::get_if<T>(found);
  if (value == nullptr) throw InternalError("attribute {} is a {}", name, kind_name(*found));
  return *value;
}

}  // namespace

std::string to_string(const Attribute& value) { return std::visit(Printer{}, value); }

std::string_view kind_name(const Attribute& value) {
  constexpr std::array<std::string_view, 7> kNames = {"flag",  "int",          "number",         "text",
                                                      "dtype", "list of ints", "list of numbers"};
  return kNames[value.index()];
}

const std::vector<Attributes::Entry>& Attributes::entries() const {
  static const std::vector<Entry> kNone;
  return entries_ == nullptr ? kNone : *entries_;
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const Entry& entry : entries())
    if (entry.first == name) return &entry.second;
  return nullptr;
}

void Attributes::set(std::string_view name, Attribute value) {
  if (entries_.use_count() != 1)  // none yet, or also those of a copy
    entries_ = std::make_shared<std::vector<Entry>>(entries());
  for (Entry& entry : *entries_) {
    if (entry.first != name) continue;
    entry.second = std::move(value);
    return;
  }
  entries_->emplace_back(std::string(name), std::move(value));
}

bool Attributes::flag(std::string_view name) const { return typed<bool>(*this, name); }
int64_t Attributes::integer(std::string_view name) const { return typed<int64_t>(*this, name); }
double Attributes::number(std::string_view name) const { return typed<double>(*this, name); }
const std::string& Attributes::text(std::string_view name) const { return typed<std::string>(*this, name); }
DType Attributes::dtype(std::string_view name) const { return typed<DType>(*this, name); }
const std::vector<int64_t>& Attributes::integers(std::string_view name) const {
  return typed<std::vector<int64_t>>(*this, name);
}
const std::vector<double>& Attributes::numbers(std::string_view name) const {
  return typed<std::vector<double>>(*this, name);
}

}  // namespace lockstep
