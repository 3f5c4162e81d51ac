// Gathered: what the file and the --set options say, as values by path, before they are converted.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "job/field.h"
#include "job/origin.h"
#include "job/yaml_node.h"

namespace lockstep {

struct Gathered {
  struct Value {
    YamlNode node;
    Origin origin;
  };
  std::map<std::string, Value, std::less<>> values;  // by path; pools as in "workerPoolSpecs[0].replicaCount"
  std::vector<bool> pools;                           // whether pool i says anything; {} keeps a position
  std::vector<std::string> notes;

  const Value* find(std::string_view path) const;
};

// Adds a whole file. Unknown keys, misplaced values and keys that say the same thing twice are UserErrors.
void gather_file(const YamlNode& root, const std::string& file, Gathered& into);
// Adds one "a.b=value", which replaces what is there; "a.b=" goes back to the default.
void gather_override(const std::string& text, Gathered& into);

}  // namespace lockstep
