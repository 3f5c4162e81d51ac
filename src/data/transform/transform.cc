#include "data/transform/transform.h"

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "data/transform/registry.h"

namespace lockstep {
namespace {

// A transform is added by its line here, in the order of the names.
constexpr const TransformEntry* kTransforms[] = {
    &kBucketiseTransform,  &kCastTransform, &kClipTransform,         &kCrossTransform,
    &kFillTransform,       &kHashTransform, &kImageInputTransform,   &kLogTransform,
    &kNormaliseTransform,  &kPadTransform,  &kTimeFeaturesTransform, &kTokeniseTransform,
    &kVocabularyTransform,
};

}  // namespace

void Transform::finish_fit(const TransformFit&) { throw InternalError("{} has nothing to fit", text()); }

void Transform::set_fitted(std::string_view) { throw InternalError("{} has nothing to fit", text()); }

std::span<const TransformEntry* const> transform_entries() { return kTransforms; }

const TransformEntry* find_transform(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kTransforms), std::end(kTransforms),
                                         [&](const TransformEntry* entry) { return entry->name == name; });
  return found == std::end(kTransforms) ? nullptr : *found;
}

std::unique_ptr<Transform> make_transform(const TransformOptions& options) {
  if (const TransformEntry* entry = find_transform(options.name)) return entry->make(options);
  std::vector<std::string_view> known;
  for (const TransformEntry* entry : kTransforms)
    if (!entry->example.empty()) known.push_back(entry->name);
  throw UserError("there is no transform '{}'; {}", options.name, suggestion(options.name, known));
}

std::string transform_reference() {
  std::string text =
      "# Transforms\n\n"
      "What can be done to the columns of a table before they are encoded, by name under "
      "`data.train.transforms`, in\n"
      "the order in which they are written there. This page is printed by `lockstep data transforms "
      "--markdown`;\n"
      "[input.md](input.md) says how they are fitted, applied and added.\n\n";
  for (const TransformEntry* entry : kTransforms) {
    if (entry->example.empty()) continue;
    text += fmt::format("## {}\n\n{}\n\n```yaml\n- {}\n```\n\n", entry->name, entry->does, entry->example);
    text += "| setting | value | otherwise |\n|---|---|---|\n";
    for (const TransformSetting& setting : entry->settings)
      text += fmt::format("| `{}` | {} | {} |\n", setting.name, setting.value,
                          setting.otherwise.empty() ? "required" : setting.otherwise);
    text += "\n";
  }
  text.pop_back();
  return text;
}

}  // namespace lockstep
