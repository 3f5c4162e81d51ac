#include <fmt/format.h>

#include "base/nearest.h"
#include "model/family.h"

namespace lockstep {

#define LOCKSTEP_FAMILIES(X) X(gpt) X(llama) X(encoder) X(tabular) X(resnet)

#define DECLARE(name) ModelFamily name##_family();
LOCKSTEP_FAMILIES(DECLARE)
#undef DECLARE

const std::vector<const ModelFamily*>& model_families() {
#define MAKE(name) name##_family(),
  static const std::vector<ModelFamily> families = {LOCKSTEP_FAMILIES(MAKE)};
#undef MAKE
  static const std::vector<const ModelFamily*> all = [] {
    std::vector<const ModelFamily*> pointers;
    for (const ModelFamily& family : families) pointers.push_back(&family);
    return pointers;
  }();
  return all;
}

const std::vector<std::string_view>& family_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const ModelFamily* family : model_families()) all.push_back(family->name);
    return all;
  }();
  return names;
}

std::vector<std::string_view> family_names(Records records) {
  std::vector<std::string_view> names;
  for (const ModelFamily* family : model_families())
    if (family->records == records) names.push_back(family->name);
  return names;
}

std::optional<SizeProblem> check_heads(const ModelSizes& sizes) {
  if (sizes.heads > 0 && sizes.dim % sizes.heads == 0) return std::nullopt;
  return SizeProblem{"heads", sizes.heads,
                     fmt::format("does not divide model.dim {}; use {}", sizes.dim,
                                 fmt::join(nearest_divisors(sizes.dim, sizes.heads), " or "))};
}

}  // namespace lockstep
