#include "job/unknown_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/nearest.h"
#include "job/aliases.h"
#include "job/fields.h"
#include "job/yaml_node.h"

namespace lockstep {
namespace {

std::string_view leaf_of(std::string_view path) { return path.substr(path.rfind('.') + 1); }

// How many edits still look like a slip of the pen.
int64_t tolerance(std::string_view key) {
  return key.size() <= 3 ? 1 : std::max<int64_t>(2, static_cast<int64_t>(key.size()) / 3);
}

class Nearest {
 public:
  explicit Nearest(std::string_view key) : key_(key), distance_(tolerance(key) + 1) {}

  // Whole paths are offered, compared by their last name.
  void consider(std::string_view leaf, std::string path) {
    int64_t distance = edit_distance(key_, leaf);
    // A name that was cut short: machine for machineSpec.
    if (distance > 2 && key_.size() > 3 && leaf.starts_with(key_)) distance = 2;
    if (distance >= distance_) return;
    distance_ = distance;
    path_ = std::move(path);
  }
  const std::string& path() const { return path_; }
  int64_t distance() const { return distance_; }

 private:
  std::string_view key_;
  int64_t distance_;
  std::string path_;
};

Nearest among_siblings(std::string_view section, std::string_view key) {
  Nearest nearest(key);
  for (const std::string_view name : names_in(section))
    nearest.consider(name, section.empty() ? std::string(name) : fmt::format("{}.{}", section, name));
  return nearest;
}

Nearest anywhere(std::string_view key) {
  Nearest nearest(key);
  for (const Field& field : job_fields()) {
    if (field.is_ignored()) continue;
    for (std::string_view path = field.path();; path = path.substr(0, path.rfind('.'))) {
      nearest.consider(leaf_of(path), std::string(path));
      if (path.find('.') == std::string_view::npos) break;
    }
  }
  for (const Alias& alias : job_aliases())
    if (!alias.target.empty()) nearest.consider(alias.name, std::string(alias.name));
  return nearest;
}

std::string known_names(std::string_view section) {
  std::vector<std::string_view> names;
  for (const std::string_view name : names_in(section)) {
    const Field* field =
        find_field(section.empty() ? std::string(name) : fmt::format("{}.{}", section, name));
    if (field == nullptr || !field->is_ignored()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string unknown_key(const std::string& place, std::string_view section, std::string_view key) {
  const std::string shown = clipped(key);
  const std::string where = section.empty() ? "at the top" : fmt::format("in {}", section);
  // Edit distance over a key of a megabyte would take minutes, and would find nothing.
  if (key.size() <= 80) {
    const Nearest sibling = among_siblings(section, key);
    const Nearest other = anywhere(key);
    const std::string& path = sibling.path().empty() || other.distance() == 0 ? other.path() : sibling.path();
    if (!path.empty())
      return fmt::format("{}: unknown key {} {}; did you mean {}?", place, shown, where, path);
  }
  if (const std::string known = known_names(section); !known.empty())
    return fmt::format("{}: unknown key {} {}; known are {}", place, shown, where, known);
  return fmt::format("{}: unknown key {} {}; remove it", place, shown, where);
}

}  // namespace lockstep
