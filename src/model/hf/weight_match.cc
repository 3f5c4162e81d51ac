#include "model/hf/weight_match.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr size_t kMostNamed = 12;

// Tables and masks that older versions saved beside the parameters.
constexpr auto kBuffers = std::to_array<std::string_view>({".attn.bias", ".attn.masked_bias",
                                                           ".attention.bias", ".attention.masked_bias",
                                                           ".inv_freq", ".position_ids", ".token_type_ids"});

bool is_buffer(std::string_view name) {
  return std::any_of(kBuffers.begin(), kBuffers.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}
bool is_pooler(std::string_view name) { return name.find("pooler.") != std::string_view::npos; }

std::string_view first_part(std::string_view name) { return name.substr(0, name.find('.')); }

// "LayerNorm.gamma" for "LayerNorm.weight".
std::string old_spelling(const std::string& name) {
  for (const auto& [end, old] :
       {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}})
    if (name.ends_with(end)) return name.substr(0, name.size() - std::string_view(end).size()) + old;
  return {};
}

class Matcher {
 public:
  Matcher(const HfWeightFiles& files, const HfModel& model) : files_(files), model_(model) {}

  WeightMatch run(std::span<const TensorSpec> wanted, bool draws_head) {
    for (const auto& [name, of] : model_.tied_names) {
      const StoredTensor *a = lookup(name), *b = lookup(of);
      if (a == nullptr || b == nullptr) continue;
      if (!files_.same_bytes(*a, *b)) return {.untied = true};
      used_.insert(a);
    }
    WeightMatch match;
    for (const TensorSpec& tensor : wanted) take(tensor, draws_head, match);
    look_at_the_rest(wanted, match);
    refuse();
    return match;
  }

 private:
  std::string_view stripped(std::string_view name) const {
    return name.starts_with(model_.base_prefix) ? name.substr(model_.base_prefix.size()) : name;
  }
  bool is_of_head(std::string_view name) const {
    return is_pooler(name) || (!model_.base_prefix.empty() && !name.starts_with(model_.base_prefix));
  }

  const StoredTensor* lookup(const std::string& name) const {
    const std::string_view prefix = model_.base_prefix;
    std::vector<std::string> names = {name};
    if (!prefix.empty())
      names.push_back(name.starts_with(prefix) ? name.substr(prefix.size()) : std::string(prefix) + name);
    for (const std::string& one : names) {
      if (const StoredTensor* found = files_.find(one)) return found;
      const std::string old = old_spelling(one);
      if (const StoredTensor* found = old.empty() ? nullptr : files_.find(old)) return found;
    }
    return nullptr;
  }

  const StoredTensor* lookup_tied(const std::string& name) const {
    if (const StoredTensor* found = lookup(name)) return found;
    for (const auto& [other, of] : model_.tied_names)
      if (of == name)
        if (const StoredTensor* found = lookup(other)) return found;
    return nullptr;
  }

  void take(const TensorSpec& tensor, bool draws_head, WeightMatch& match) {
    const StoredTensor* found = lookup_tied(tensor.name);
    const bool may_draw = draws_head && is_of_head(tensor.name);
    if (found != nullptr) used_.insert(found);
    if (found == nullptr || (may_draw && found->spec().shape != tensor.shape)) {
      match.drawn.push_back(tensor.name);
      if (!may_draw) problems_.push_back(fmt::format("{} is not there", tensor.name));
    } else if (found->spec().shape != tensor.shape) {
      problems_.push_back(fmt::format("{} is {} in {}, and {} by config.json", tensor.name,
                                      to_string(found->spec().shape), files_.file_of(*found),
                                      to_string(tensor.shape)));
    } else if (!is_floating(found->spec().dtype)) {
      problems_.push_back(fmt::format("{} is {} in {}; weights are f32, bf16 or f16", tensor.name,
                                      name_of(found->spec().dtype), files_.file_of(*found)));
    } else {
      match.taken.push_back({tensor.name, found});
    }
  }

  // A tensor of the body that the model does not have would change what it computes.
  void look_at_the_rest(std::span<const TensorSpec> wanted, WeightMatch& match) {
    std::set<std::string_view> body;
    for (const TensorSpec& tensor : wanted)
      if (!is_of_head(tensor.name)) body.insert(first_part(stripped(tensor.name)));
    for (const StoredTensor& tensor : files_.tensors()) {
      const std::string& name = tensor.spec().name;
      if (used_.contains(&tensor) || is_buffer(name)) continue;
      if (body.contains(first_part(stripped(name))) && !is_pooler(name))
        problems_.push_back(fmt::format("{} is there, and this model has no such tensor", name));
      else
        match.unused.push_back(name);
    }
  }

  void refuse() {
    if (problems_.empty()) return;
    const size_t more = problems_.size() - std::min(problems_.size(), kMostNamed);
    problems_.resize(std::min(problems_.size(), kMostNamed));
    if (more > 0) problems_.push_back(fmt::format("and {} more", more));
    throw UserError("{}: the weights do not fit what config.json says:\n  {}", files_.folder(),
                    fmt::join(problems_, "\n  "));
  }

  const HfWeightFiles& files_;
  const HfModel& model_;
  std::set<const StoredTensor*> used_;
  std::vector<std::string> problems_;
};

}  // namespace

WeightMatch match_weights(const HfWeightFiles& files, const HfModel& model,
                          std::span<const TensorSpec> wanted, bool draws_head) {
  return Matcher(files, model).run(wanted, draws_head);
}

}  // namespace lockstep
