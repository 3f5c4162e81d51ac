// The transforms there are, each with what a user needs to know of it: docs/transforms.md is made of this,
// and settings that are not described here do not exist (transform/settings.h checks both ways).
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/transform/transform.h"

namespace lockstep {

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
