// JinjaValue: what an expression of a template gives. The types and the text they print as are Python's,
// since templates are written for the engine there: text counts by code points, 1 == 1.0 == true, and
// printing true gives True.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace lockstep {

class JinjaValue;
using JinjaList = std::vector<JinjaValue>;

// What a call was given.
struct JinjaArguments {
  std::vector<JinjaValue> positional;
  std::vector<std::pair<std::string, JinjaValue>> named;
};
using JinjaCallable = std::function<JinjaValue(const JinjaArguments&)>;

// Members in the order in which they were added; keys are texts.
struct JinjaDict {
  std::vector<std::pair<std::string, JinjaValue>> members;
  bool is_namespace = false;  // may be changed by `set`

  const JinjaValue* find(std::string_view key) const;
  void put(std::string_view key, JinjaValue value);
};

class JinjaValue {
 public:
  struct Undefined {
    std::string name;
  };
  struct None {};
  using Text = std::shared_ptr<const std::string>;
  using List = std::shared_ptr<const JinjaList>;
  using Dict = std::shared_ptr<JinjaDict>;
  using Callable = std::shared_ptr<const JinjaCallable>;

  JinjaValue() : value_(None{}) {}
  JinjaValue(Undefined undefined) : value_(std::move(undefined)) {}  // NOLINT(google-explicit-constructor)
  JinjaValue(bool truth) : value_(truth) {}                          // NOLINT(google-explicit-constructor)
  JinjaValue(int64_t number) : value_(number) {}                     // NOLINT(google-explicit-constructor)
  JinjaValue(double number) : value_(number) {}                      // NOLINT(google-explicit-constructor)
  JinjaValue(std::string text)                                       // NOLINT(google-explicit-constructor)
      : value_(std::make_shared<const std::string>(std::move(text))) {}
  JinjaValue(std::string_view text) : JinjaValue(std::string(text)) {}  // NOLINT(google-explicit-constructor)
  JinjaValue(const char* text) : JinjaValue(std::string(text)) {}       // NOLINT(google-explicit-constructor)
  JinjaValue(JinjaList list);                                           // NOLINT(google-explicit-constructor)
  JinjaValue(JinjaDict dict);                                           // NOLINT(google-explicit-constructor)
  JinjaValue(JinjaCallable callable);                                   // NOLINT(google-explicit-constructor)

  bool is_undefined() const { return std::holds_alternative<Undefined>(value_); }
  bool is_none() const { return std::holds_alternative<None>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_whole() const { return std::holds_alternative<int64_t>(value_) || is_bool(); }
  bool is_number() const { return is_whole() || std::holds_alternative<double>(value_); }
  bool is_text() const { return std::holds_alternative<Text>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  bool is_dict() const { return std::holds_alternative<Dict>(value_); }
  bool is_callable() const { return std::holds_alternative<Callable>(value_); }

  // These throw UserError for a value of another type.
  int64_t whole() const;
  double number() const;
  const std::string& text() const;
  const JinjaList& list() const;
  JinjaDict& dict() const;
  const JinjaCallable& callable() const;
  const std::string& undefined_name() const { return std::get<Undefined>(value_).name; }

  bool truth() const;
  std::string_view type_name() const;
  // As {{ value }} prints it, and as it is printed within a list.
  std::string printed() const;
  std::string quoted() const;
  // What a `for` goes through: elements, code points of a text, keys. Throws UserError for other types.
  JinjaList elements() const;
  int64_t length() const;
  bool contains(const JinjaValue& element) const;

  bool operator==(const JinjaValue& other) const;
  // Throws UserError where there is no order.
  bool less_than(const JinjaValue& other) const;

 private:
  std::variant<None, Undefined, bool, int64_t, double, Text, List, Dict, Callable> value_;
};

// Text by code points, as Python counts. Bytes that are no UTF-8 count one each.
std::vector<std::string_view> code_points(std::string_view text);
// What str.strip() takes off, when `characters` is empty.
std::string_view stripped(std::string_view text, bool left, bool right, std::string_view characters = {});
// As json.dumps(value, ensure_ascii=False, indent=indent) writes it; indent below 0: in one line.
std::string json_text(const JinjaValue& value, int64_t indent = -1);
JinjaValue value_of_json(std::string_view json);

}  // namespace lockstep
