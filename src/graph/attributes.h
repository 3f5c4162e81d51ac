// The attributes of a node: a small ordered list of named constants, fixed when the graph is built.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"

namespace lockstep {

using Attribute =
    std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>, std::vector<double>>;

std::string to_string(const Attribute& value);
std::string_view kind_name(const Attribute& value);  // "int", "list of ints", ...

class Attributes {
 public:
  using Entry = std::pair<std::string, Attribute>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries)
      : entries_(std::make_shared<std::vector<Entry>>(entries)) {}

  const Attribute* find(std::string_view name) const;
  void set(std::string_view name, Attribute value);
  const std::vector<Entry>& entries() const;

  // Typed reads; a missing or differently typed attribute is a bug, since nodes are checked when they are
  // made.
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  DType dtype(std::string_view name) const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  const std::vector<double>& numbers(std::string_view name) const;

  bool operator==(const Attributes& other) const { return entries() == other.entries(); }

 private:
  // Shared by copies until one is changed: passes copy every node of a graph.
  std::shared_ptr<std::vector<Entry>> entries_;
};

}  // namespace lockstep
