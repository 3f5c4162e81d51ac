#include "job/alias_rules.h"

#include <algorithm>
#include <initializer_list>

#include "base/error.h"
#include "job/numbers.h"

namespace lockstep {
namespace {

YamlNode with_text(const YamlNode& like, std::string_view text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = text;
  node.line = like.line;
  node.column = like.column;
  return node;
}

bool flag(const AliasValue& value) {
  const bool is_true = value.node.is_scalar() && value.node.text == "true";
  if (!is_true && !(value.node.is_scalar() && value.node.text == "false"))
    throw UserError("{}: {} is {}; write true or false", value.place, value.name, describe(value.node));
  return is_true;
}

struct Rename {
  std::string_view theirs, ours;
};

std::optional<YamlNode> renamed(const AliasValue& value, std::initializer_list<Rename> names) {
  for (const Rename& name : names)
    if (value.node.is_scalar() && value.node.text == name.theirs) return with_text(value.node, name.ours);
  std::vector<std::string_view> known;
  for (const Rename& name : names) known.push_back(name.theirs);
  throw UserError("{}: {} is {}, which has no counterpart here; write one of {}", value.place, value.name,
                  describe(value.node), fmt::join(known, ", "));
}

}  // namespace

std::optional<YamlNode> unless_auto(const AliasValue& value) {
  if (value.node.is_scalar() && value.node.text == "auto") return std::nullopt;
  return value.node;
}

std::optional<YamlNode> unless_negative(const AliasValue& value) {
  if (value.node.is_scalar() && value.node.text == "-1") return std::nullopt;
  return value.node;
}

std::optional<YamlNode> percent_from_ratio(const AliasValue& value) {
  const std::optional<double> ratio = value.node.is_scalar() ? read_number(value.node.text) : std::nullopt;
  if (!ratio || !(*ratio >= 0 && *ratio <= 1))
    throw UserError("{}: {} is {}; write a number from 0 to 1, or train.lr.warmup: 5%", value.place,
                    value.name, describe(value.node));
  return with_text(value.node, fmt::format("{:.12g}%", *ratio * 100));
}

std::optional<YamlNode> warmup_from_hf(const AliasValue& value) {
  const std::optional<double> number = value.node.is_scalar() ? read_number(value.node.text) : std::nullopt;
  return number && *number > 0 && *number < 1 ? percent_from_ratio(value) : value.node;
}

std::optional<YamlNode> decay_from_hf(const AliasValue& value) {
  return renamed(value, {{"linear", "linear"},
                         {"cosine", "cosine"},
                         {"constant", "constant"},
                         {"constant_with_warmup", "constant"},
                         {"polynomial", "polynomial"},
                         {"inverse_sqrt", "inverse_sqrt"},
                         {"warmup_stable_decay", "wsd"}});
}

std::optional<YamlNode> decay_from_deepspeed(const AliasValue& value) {
  return renamed(value,
                 {{"WarmupLR", "constant"}, {"WarmupDecayLR", "linear"}, {"WarmupCosineLR", "cosine"}});
}

std::optional<YamlNode> optimizer_from_hf(const AliasValue& value) {
  return renamed(value, {{"adamw_torch", "adamw"},
                         {"adamw_torch_fused", "adamw"},
                         {"adamw_hf", "adamw"},
                         {"adafactor", "adafactor"},
                         {"sgd", "sgd"},
                         {"lion_32bit", "lion"},
                         {"lion", "lion"}});
}

std::optional<YamlNode> optimizer_from_deepspeed(const AliasValue& value) {
  return renamed(value,
                 {{"Adam", "adam"}, {"AdamW", "adamw"}, {"Lamb", "lamb"}, {"Lion", "lion"}, {"SGD", "sgd"}});
}

std::optional<YamlNode> precision_from_bf16(const AliasValue& value) {
  return with_text(value.node, flag(value) ? "bf16" : "fp32");
}

std::optional<YamlNode> refuse_fp16(const AliasValue& value) {
  if (flag(value))
    throw UserError("{}: {} is true, but there is no fp16 training here; write train.precision: bf16",
                    value.place, value.name);
  return std::nullopt;
}

std::optional<YamlNode> refuse_batch_size(const AliasValue& value) {
  throw UserError(
      "{}: {} could mean two things; write train.global_batch for the samples of an update, train.microbatch "
      "for "
      "those that go through the model at once",
      value.place, value.name);
}

std::optional<YamlNode> recompute_from_flag(const AliasValue& value) {
  return with_text(value.node, flag(value) ? "block" : "none");
}

std::optional<YamlNode> metric_from_hf(const AliasValue& value) {
  if (!value.node.is_scalar() || !value.node.text.starts_with("eval_")) return value.node;
  return with_text(value.node, value.node.text.substr(5));
}

}  // namespace lockstep
