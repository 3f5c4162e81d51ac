#include "tokenizer/json_part.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {

using nlohmann::json;

JsonPart::JsonPart(const json& value, std::string where, std::string path)
    : value_(value), where_(std::move(where)), path_(std::move(path)) {
  if (!value_.is_object())
    throw UserError("{}: {} must be an object, not {}", where_, path_.empty() ? "the file" : path_,
                    value_.type_name());
}

std::string JsonPart::place(std::string_view key) const {
  return fmt::format("{}: {}{}{}", where_, path_, path_.empty() || key.empty() ? "" : ".", printable(key));
}

void JsonPart::refuse(std::string_view key, std::string_view reason) const {
  throw UserError("{} {}", place(key), reason);
}

const json* JsonPart::find(std::string_view key) {
  read_.emplace(key);
  const auto found = value_.find(key);
  return found == value_.end() || found->is_null() ? nullptr : &*found;
}

const json& JsonPart::need(std::string_view key) {
  const json* found = find(key);
  if (!found) refuse(key, "is missing");
  return *found;
}

std::string JsonPart::text(std::string_view key) {
  const json& value = need(key);
  if (!value.is_string()) refuse(key, fmt::format("must be a text, not {}", value.type_name()));
  return value.get<std::string>();
}

std::string JsonPart::text(std::string_view key, std::string_view otherwise) {
  return find(key) ? text(key) : std::string(otherwise);
}

bool JsonPart::flag(std::string_view key) {
  const json& value = need(key);
  if (!value.is_boolean()) refuse(key, fmt::format("must be true or false, not {}", value.type_name()));
  return value.get<bool>();
}

bool JsonPart::flag(std::string_view key, bool otherwise) { return find(key) ? flag(key) : otherwise; }

int64_t JsonPart::number(std::string_view key, int64_t low, int64_t high) {
  const json& value = need(key);
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(high)) ||
      value.get<int64_t>() < low || value.get<int64_t>() > high)
    refuse(key, fmt::format("is {}; it must be a whole number from {} to {}",
                            printable(value.dump().substr(0, 40)), low, high));
  return value.get<int64_t>();
}

char32_t JsonPart::character(std::string_view key) {
  const std::string value = text(key);
  if (value.empty() || decode_char(value.data()).bytes != value.size())
    refuse(key, fmt::format("is '{}'; it must be one character", printable(value)));
  return decode_char(value.data()).value;
}

JsonPart JsonPart::part(std::string_view key) {
  return {need(key), where_, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key)};
}

std::optional<JsonPart> JsonPart::optional_part(std::string_view key) {
  if (!find(key)) return std::nullopt;
  return part(key);
}

std::vector<JsonPart> JsonPart::parts(std::string_view key) {
  const json& value = need(key);
  if (!value.is_array()) refuse(key, fmt::format("must be a list, not {}", value.type_name()));
  std::vector<JsonPart> out;
  for (size_t i = 0; i < value.size(); ++i)
    out.emplace_back(value[i], where_, fmt::format("{}{}{}[{}]", path_, path_.empty() ? "" : ".", key, i));
  return out;
}

std::string JsonPart::choice(std::string_view key, std::span<const std::string_view> known) {
  std::string value = text(key);
  for (const std::string_view name : known) {
    if (name == value) return value;
  }
  refuse(key, fmt::format("is '{}', which Lockstep does not have; {}", printable(value),
                          suggestion(value, known)));
}

void JsonPart::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) read_.emplace(key);
}

void JsonPart::finish() const {
  for (const auto& [key, value] : value_.items()) {
    if (!read_.contains(key))
      refuse(key, "is a key that Lockstep does not know; what it asks for could not be followed");
  }
}

}  // namespace lockstep::tok
