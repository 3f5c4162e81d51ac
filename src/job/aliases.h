// The keys of Hugging Face's Trainer, DeepSpeed, Axolotl and others that are understood as ours.
//
// A plain alias hands its value over as it is; others translate it (warmup_ratio 0.05 becomes warmup 5%).
// Aliases stand at the top of the file, where those tools have them, or under train.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "job/yaml_node.h"

namespace lockstep {

// Not fields: parts that are put together once all keys are known (combine.h).
inline constexpr std::string_view kAccumulation = "gradient_accumulation_steps";
inline constexpr std::string_view kBeta1 = "adam_beta1";
inline constexpr std::string_view kBeta2 = "adam_beta2";

struct AliasValue {
  const YamlNode& node;
  std::string_view name;
  const std::string& place;  // for errors: "job.yaml:14"
};

struct Alias {
  // With dots where the other tool nests; a trailing .* stands for everything below.
  std::string_view name;
  std::string_view target;  // a field's path or one of the parts above; empty: has no effect here
  std::string_view tool;
  // Nothing: the value says "not set", as max_steps: -1 does. Null: the value is the same here.
  std::function<std::optional<YamlNode>(const AliasValue&)> translate = nullptr;
};

std::span<const Alias> job_aliases();
// By the full path in the file; "train." before a top-level alias is passed over.
const Alias* find_alias(std::string_view path);
// Is there an alias below this path?
bool is_alias_section(std::string_view path);

}  // namespace lockstep
