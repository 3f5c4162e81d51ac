// A YAML document as a plain tree whose every node knows its line: what the job file's reader works on.
//
// read_yaml bounds size, nesting and the number of nodes (aliases counted as what they expand to) before
// anything can grow, and refuses what a job file has no use for: several documents, tags, merge keys, keys
// that are not plain text, the same key twice. Every error is a UserError that starts with file:line.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

struct YamlNode {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  std::string text;  // of a scalar
  bool quoted = false;
  std::vector<YamlNode> items;  // of a list
  std::vector<Entry> entries;   // of a map, in the order of the file
  int line = 0;                 // from 1
  int column = 0;

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }
};

struct YamlNode::Entry {
  std::string key;
  int line = 0;  // of the key
  YamlNode value;
};

struct YamlLimits {
  int64_t bytes = int64_t{1} << 20;
  int depth = 32;
  int64_t nodes = 50'000;
};

// `source` names the text in errors: a path, or an option. An empty document is a null node.
YamlNode read_yaml(std::string_view text, const std::string& source, const YamlLimits& limits = {});

// "a map", "a list", "nothing" or "'the text'", for messages.
std::string describe(const YamlNode& node);
// One line of at most 60 bytes, for messages that quote what somebody wrote.
std::string clipped(std::string_view text);

}  // namespace lockstep
