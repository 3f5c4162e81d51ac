// One object of a tokenizer.json, which remembers what was read of it: a key that nobody asked for is refused
// by name, since it may mean a behaviour that is not here.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::tok {

class JsonPart {
 public:
  // `where` names the file, `path` the object in it ("normalizer", "pre_tokenizer.pretokenizers[1]").
  JsonPart(const nlohmann::json& value, std::string where, std::string path);

  const std::string& where() const { return where_; }
  // Of a key of this object, as errors name it: "tokenizer.json: model.vocab".
  std::string place(std::string_view key) const;

  // Null and a missing key are the same: none.
  const nlohmann::json* find(std::string_view key);
  const nlohmann::json& need(std::string_view key);
  std::string text(std::string_view key);
  std::string text(std::string_view key, std::string_view otherwise);
  bool flag(std::string_view key);
  bool flag(std::string_view key, bool otherwise);
  int64_t number(std::string_view key, int64_t low, int64_t high);
  // A text of one character.
  char32_t character(std::string_view key);
  JsonPart part(std::string_view key);
  std::optional<JsonPart> optional_part(std::string_view key);
  std::vector<JsonPart> parts(std::string_view key);
  // The value of a key that is one of these.
  std::string choice(std::string_view key, std::span<const std::string_view> known);

  // Read, and not used.
  void ignore(std::initializer_list<std::string_view> keys);
  // Throws for every key that was not read.
  void finish() const;

  [[noreturn]] void refuse(std::string_view key, std::string_view reason) const;

 private:
  const nlohmann::json& value_;
  std::string where_, path_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace lockstep::tok
