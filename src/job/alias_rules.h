// How the values of other tools' keys translate. Each returns nothing where the value means "not set".
#pragma once
#include <optional>

#include "job/aliases.h"

namespace lockstep {

std::optional<YamlNode> unless_auto(const AliasValue& value);           // "auto" is not set
std::optional<YamlNode> unless_negative(const AliasValue& value);       // -1 is not set
std::optional<YamlNode> percent_from_ratio(const AliasValue& value);    // 0.05 is 5%
std::optional<YamlNode> warmup_from_hf(const AliasValue& value);        // steps, or below 1 a ratio
std::optional<YamlNode> decay_from_hf(const AliasValue& value);         // lr_scheduler_type
std::optional<YamlNode> decay_from_deepspeed(const AliasValue& value);  // scheduler.type
std::optional<YamlNode> optimizer_from_hf(const AliasValue& value);     // optim
std::optional<YamlNode> optimizer_from_deepspeed(const AliasValue& value);
std::optional<YamlNode> precision_from_bf16(const AliasValue& value);
std::optional<YamlNode> refuse_fp16(const AliasValue& value);        // true is an error: there is no fp16
std::optional<YamlNode> refuse_batch_size(const AliasValue& value);  // could mean either batch
std::optional<YamlNode> recompute_from_flag(const AliasValue& value);
std::optional<YamlNode> metric_from_hf(const AliasValue& value);  // eval_loss is loss

}  // namespace lockstep
