#include "train/checkpoint/identity.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sha256.h"

namespace lockstep {

void Identity::add(std::string_view name, std::string_view value) {
  LOCKSTEP_CHECK(std::ranges::find(fields_, name, &Field::name) == fields_.end(),
                 "identity field {} given twice", name);
  fields_.push_back({std::string(name), std::string(value)});
}

void Identity::add(std::string_view name, double value) {
  add(name, std::string_view(fmt::format("{}", value)));
}

const std::string* Identity::find(std::string_view name) const {
  const auto found = std::ranges::find(fields_, name, &Field::name);
  return found == fields_.end() ? nullptr : &found->value;
}

void Identity::remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return field.name == name; });
}

std::string Identity::sha256() const {
  std::vector<Field> sorted = fields_;
  std::ranges::sort(sorted, {}, &Field::name);
  // Lengths in front, so that no two lists of fields give the same text.
  Sha256 hash;
  for (const auto& [name, value] : sorted)
    hash.update(fmt::format("{}:{}{}:{}\n", name.size(), name, value.size(), value));
  return hash.finish();
}

std::string diff(const Identity& checkpoint, const Identity& job) {
  std::string lines;
  for (const auto& [name, value] : job.fields()) {
    const std::string* other = checkpoint.find(name);
    if (other == nullptr) lines += fmt::format("{}: checkpoint has none, job {}\n", name, value);
    if (other != nullptr && *other != value)
      lines += fmt::format("{}: checkpoint {}, job {}\n", name, *other, value);
  }
  for (const auto& [name, value] : checkpoint.fields())
    if (job.find(name) == nullptr) lines += fmt::format("{}: checkpoint {}, job has none\n", name, value);
  return lines;
}

nlohmann::json to_json(const Identity& identity) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [name, value] : identity.fields()) list.push_back({name, value});
  return list;
}

Identity identity_from_json(const nlohmann::json& list) {
  Identity identity;
  for (const nlohmann::json& field : list) {
    const auto& name = field.at(0).get_ref<const std::string&>();
    if (identity.find(name) != nullptr) throw UserError("{} is there twice", name);
    identity.add(name, std::string_view(field.at(1).get_ref<const std::string&>()));
  }
  return identity;
}

}  // namespace lockstep
