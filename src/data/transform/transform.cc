#include "data/transform/transform.h"

#include "base/error.h"
#include "base/nearest.h"
#include "data/transform/clip.h"
#include "data/transform/image_input.h"

namespace lockstep {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Transform> (*make)(const TransformOptions& options);
};

// A transform is added by its line here.
constexpr Entry kTransforms[] = {
    {"clip", make_clip},
    {"image_input", make_image_input},
};

}  // namespace

void Transform::finish_fit(const TransformFit&) { throw InternalError("{} has nothing to fit", text()); }

void Transform::set_fitted(std::string_view) { throw InternalError("{} has nothing to fit", text()); }

std::unique_ptr<Transform> make_transform(const TransformOptions& options) {
  for (const Entry& entry : kTransforms)
    if (entry.name == options.name) return entry.make(options);
  throw UserError("there is no transform '{}'; {}", options.name,
                  suggestion(options.name, transform_names()));
}

std::vector<std::string_view> transform_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kTransforms) names.push_back(entry.name);
  return names;
}

}  // namespace lockstep
