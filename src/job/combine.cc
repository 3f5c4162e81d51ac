#include "job/combine.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "job/aliases.h"
#include "job/fields.h"
#include "job/numbers.h"

namespace lockstep {
namespace {

YamlNode scalar(std::string text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = std::move(text);
  return node;
}

Origin derived(const Origin& from, std::string how) {
  return {.kind = Origin::Kind::kDerived, .file = from.place(), .how = std::move(how)};
}

// A positive whole number, or nothing if the value is absent or something else (which its own field will
// refuse).
std::optional<int64_t> positive(const Gathered::Value* value) {
  const std::optional<int64_t> number =
      value && value->node.is_scalar() ? read_whole(value->node.text) : std::nullopt;
  return number && *number > 0 ? number : std::nullopt;
}

void combine_batch(Gathered& gathered) {
  const Gathered::Value* accumulation = gathered.find(kAccumulation);
  if (accumulation == nullptr) return;
  const std::optional<int64_t> rounds = positive(accumulation);
  if (!rounds)
    throw UserError("{}: {} is {}; write a whole number at least 1", accumulation->origin.place(),
                    kAccumulation, describe(accumulation->node));
  const Gathered::Value* micro = gathered.find("train.microbatch");
  const Gathered::Value* global = gathered.find("train.global_batch");
  const Gathered::Value* workers = gathered.find("strategy.workers");
  if (micro == nullptr && global == nullptr)
    throw UserError("{}: {} alone does not give a batch; add train.global_batch and train.microbatch",
                    accumulation->origin.place(), kAccumulation);
  const std::optional<int64_t> each = positive(micro);
  const int64_t count = positive(workers).value_or(1);
  int64_t product = 0;
  if (!each || __builtin_mul_overflow(*each, *rounds, &product) ||
      __builtin_mul_overflow(product, count, &product)) {
    if (global == nullptr && each)
      throw UserError("{}: {} {} is too large; write fewer", accumulation->origin.place(), kAccumulation,
                      *rounds);
    return;
  }
  const std::string sum = fmt::format("{} x {} x {} worker{}", *each, *rounds, count, count == 1 ? "" : "s");
  if (global == nullptr) {
    gathered.notes.push_back(fmt::format("{}: understood {} {} as train.global_batch: {} ({})",
                                         accumulation->origin.place(), kAccumulation, *rounds, product, sum));
    const Origin origin =
        derived(accumulation->origin, fmt::format("{}, {}", accumulation->origin.place(), sum));
    gathered.values["train.global_batch"] = {scalar(std::to_string(product)), origin};
    return;
  }
  // A batch given on the command line is meant to replace what the file's accumulation gave.
  const bool replaced =
      global->origin.kind == Origin::Kind::kSet && accumulation->origin.kind != Origin::Kind::kSet;
  const std::optional<int64_t> whole = positive(global);
  if (!replaced && whole && *whole != product)
    throw UserError("{}: the global batch is {}, but {} = {}; remove {}, or write {}", global->origin.place(),
                    *whole, sum, product, kAccumulation, product);
}

void combine_betas(Gathered& gathered) {
  const std::array<const Gathered::Value*, 2> given = {gathered.find(kBeta1), gathered.find(kBeta2)};
  if (given[0] == nullptr && given[1] == nullptr) return;
  const Gathered::Value& first = given[0] != nullptr ? *given[0] : *given[1];
  if (const Gathered::Value* both = gathered.find("train.optimizer.betas"))
    throw UserError("{}: {} and train.optimizer.betas ({}) say the same thing; keep one of them",
                    first.origin.place(), first.origin.alias, both->origin.place());
  constexpr std::array<std::string_view, 2> kUsual = {"0.9", "0.999"};
  YamlNode list;
  list.kind = YamlNode::Kind::kList;
  list.line = first.node.line;
  for (size_t i = 0; i < 2; ++i)
    list.items.push_back(given[i] != nullptr ? given[i]->node : scalar(std::string(kUsual[i])));
  Origin origin = first.origin;
  origin.alias =
      given[0] != nullptr && given[1] != nullptr ? "adam_beta1 and adam_beta2" : first.origin.alias;
  gathered.notes.push_back(
      fmt::format("{}: understood {} (Hugging Face) as train.optimizer.betas", origin.place(), origin.alias));
  gathered.values["train.optimizer.betas"] = {std::move(list), std::move(origin)};
}

// Of two keys that say the same thing, the one on the command line is meant to replace the file's.
void replace_by_set(Gathered& gathered, const std::string& one, const std::string& other) {
  for (const auto& [kept, left] : {std::pair(one, other), std::pair(other, one)}) {
    const Gathered::Value* by = gathered.find(kept);
    const Gathered::Value* replaced = gathered.find(left);
    if (by == nullptr || replaced == nullptr || by->origin.kind != Origin::Kind::kSet ||
        replaced->origin.kind == Origin::Kind::kSet)
      continue;
    gathered.notes.push_back(fmt::format("{}: {} {} is replaced by --set {}", replaced->origin.place(), left,
                                         clipped(replaced->node.text), kept));
    gathered.values.erase(gathered.values.find(left));
    return;
  }
}

bool is_table(const Gathered::Value* format) {
  return format != nullptr && std::any_of(kTableFormats.begin(), kTableFormats.end(), [&](DataFormat table) {
           return format->node.text == name_of(table);
         });
}

void inherit_eval(Gathered& gathered) {
  constexpr std::string_view kEval = "data.eval.", kTrain = "data.train.";
  const auto first = gathered.values.lower_bound(kEval);
  if (first == gathered.values.end() || !first->first.starts_with(kEval)) return;
  const Gathered::Value* format = gathered.find("data.eval.format");
  const Gathered::Value* train_format = gathered.find("data.train.format");
  // Tables have a label and columns, whichever format they are in.
  const bool alike = format == nullptr ||
                     (train_format != nullptr && format->node.text == train_format->node.text) ||
                     (is_table(format) && is_table(train_format));
  if (!alike) return;
  for (const std::string_view key : {"format", "label", "columns.numeric", "columns.categorical",
                                     "columns.ignore", "columns.log1p", "columns.fill"}) {
    const std::string own = fmt::format("{}{}", kEval, key), other = fmt::format("{}{}", kTrain, key);
    const Gathered::Value* value = gathered.find(other);
    if (value == nullptr || gathered.find(own) != nullptr) continue;
    const Gathered::Value inherited{value->node, derived(value->origin, "as " + other)};
    gathered.values[own] = inherited;
  }
}

}  // namespace

void combine(Gathered& gathered) {
  combine_batch(gathered);
  combine_betas(gathered);
  replace_by_set(gathered, "train.steps", "train.epochs");
  inherit_eval(gathered);
  for (const std::string_view part : {kAccumulation, kBeta1, kBeta2})
    if (const auto found = gathered.values.find(part); found != gathered.values.end())
      gathered.values.erase(found);
}

}  // namespace lockstep
