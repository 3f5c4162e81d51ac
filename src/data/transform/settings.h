// Reads the settings of a transform, each once; what is left over was not meant for it.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "data/transform/transform.h"

namespace lockstep {

class TransformSettings {
 public:
  explicit TransformSettings(const TransformOptions& options) : options_(options) {}

  // Throw UserError that names transform and setting where it is missing, not a number, or not one value.
  const std::vector<std::string>& list(std::string_view key);  // of at least one
  std::string word(std::string_view key);
  double number(std::string_view key);
  std::optional<double> optional_number(std::string_view key);
  // Throws UserError for a setting that nobody asked for.
  void finish() const;

 private:
  const std::vector<std::string>* find(std::string_view key);

  const TransformOptions& options_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace lockstep
