// Reads the settings of a transform. What is left over was not meant for it; and what is asked for must be
// described in the registry, and the other way round, so that the reference is complete.
#pragma once
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/transform/transform.h"

namespace lockstep {

class TransformSettings {
 public:
  explicit TransformSettings(const TransformOptions& options) : options_(options) {}

  const std::string& transform() const { return options_.name; }
  // All settings as written, for Transform::text(). The version changes when the same settings would mean
  // something else.
  std::string text(int version) const;

  // Throw UserError that names transform and setting where it is missing, not a number, or not one value.
  const std::vector<std::string>& list(std::string_view key);  // of at least one
  std::vector<std::string> optional_list(std::string_view key);
  std::string word(std::string_view key);
  std::optional<std::string> optional_word(std::string_view key);
  double number(std::string_view key);
  std::optional<double> optional_number(std::string_view key);
  std::vector<double> optional_numbers(std::string_view key);
  int64_t whole(std::string_view key, int64_t least, int64_t most, std::optional<int64_t> otherwise = {});
  // One of these words; the first where it is left out.
  std::string choice(std::string_view key, std::initializer_list<std::string_view> words);
  bool yes(std::string_view key);  // yes or no, no where it is left out
  // Throws UserError for a setting that nobody asked for.
  void finish() const;

 private:
  const std::vector<std::string>* find(std::string_view key);

  const TransformOptions& options_;
  std::set<std::string, std::less<>> known_;
};

// The transforms there are, each with what a user needs to know of it: docs/transforms.md is made of this,
// and settings that are not described here do not exist (transform/settings.h checks both ways).
struct TransformSetting {
  std::string_view name;
  std::string_view value;      // what to write: "one or more columns"
  std::string_view otherwise;  // what holds where it is left out; empty: it must be there
};

struct TransformEntry {
  std::string_view name;
  std::string_view does;     // one or two sentences
  std::string_view example;  // as in a job file; empty: it is not for job files
  std::span<const TransformSetting> settings;
  std::unique_ptr<Transform> (*make)(const TransformOptions& options);
};

std::span<const TransformEntry* const> transform_entries();  // by name
// Null: there is none of this name.
const TransformEntry* find_transform(std::string_view name);
// docs/transforms.md
std::string transform_reference();

// Each is defined in the file of its name.
extern const TransformEntry kBucketiseTransform, kCastTransform, kClipTransform, kCrossTransform,
    kFillTransform, kHashTransform, kImageInputTransform, kLogTransform, kNormaliseTransform, kPadTransform,
    kTimeFeaturesTransform, kTokeniseTransform, kVocabularyTransform;

}  // namespace lockstep
