#include "data/transform/transform.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "data/transform/column_values.h"
#include "data/transform/settings.h"

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
      "[input.md](input.md) says how they are fitted and applied, "
      "[extending-input.md](extending-input.md) how to add one.\n\n";
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

namespace {

using Names = std::set<std::string, std::less<>>;

const BlockField* find_field(const std::vector<BlockField>& fields, std::string_view name) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const BlockField& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

std::vector<BlockField> columns_to_decode(const Transforms& transforms) {
  std::vector<BlockField> columns;
  Names made;
  for (const auto& transform : transforms) {
    for (const BlockField& field : transform->reads()) {
      if (made.contains(field.name)) continue;
      const BlockField* known = find_field(columns, field.name);
      if (known == nullptr || known->type == ValueType::kBytes) put_field(columns, field);
    }
    for (const std::string& name : transform->makes()) made.insert(name);
  }
  return columns;
}

std::vector<BlockField> made_columns(const Transforms& transforms, const std::vector<std::string>& names,
                                     const std::vector<BlockField>& in_files) {
  std::vector<BlockField> fields = in_files;
  // As they will be decoded.
  for (const BlockField& wanted : columns_to_decode(transforms))
    if (const BlockField* field = find_field(in_files, wanted.name); field != nullptr && field->width == 1)
      put_field(fields, wanted);
  Names made;
  for (size_t i = 0; i < transforms.size(); ++i) {
    for (const BlockField& field : transforms[i]->reads()) {
      if (find_field(fields, field.name) != nullptr) continue;
      std::vector<std::string_view> known;
      for (const BlockField& other : fields) known.push_back(other.name);
      throw UserError("transform {}: there is no column '{}'; {}", names[i], field.name,
                      suggestion(field.name, known));
    }
    fields = transforms[i]->output(fields);
    for (const std::string& name : transforms[i]->makes()) made.insert(name);
  }
  std::erase_if(fields, [&](const BlockField& field) { return !made.contains(field.name); });
  return fields;
}

bool FitPass::any() const { return std::find(fit.begin(), fit.end(), true) != fit.end(); }

FitPass next_pass(const Transforms& transforms, const std::vector<bool>& ready) {
  FitPass pass;
  Names unknown;  // columns that depend on what is not fitted
  const auto depends = [&](const std::vector<BlockField>& fields) {
    return std::any_of(fields.begin(), fields.end(),
                       [&](const BlockField& field) { return unknown.contains(field.name); });
  };
  for (size_t i = 0; i < transforms.size(); ++i) {
    pass.fit.push_back(!ready[i] && !depends(transforms[i]->fit_reads()));
    pass.apply.push_back(ready[i] && !depends(transforms[i]->reads()));
    for (const std::string& name : transforms[i]->makes()) {
      if (pass.apply[i])
        unknown.erase(name);
      else
        unknown.insert(name);
    }
  }
  return pass;
}

}  // namespace lockstep
