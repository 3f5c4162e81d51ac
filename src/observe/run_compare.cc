#include "observe/run_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

namespace lockstep {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

std::vector<Difference> differences(const StepRecord& a, const StepRecord& b) {
  std::vector<Difference> list;
  const auto number = [&](const char* name, double x, double y) {
    if (!same_bits(x, y)) list.push_back({name, fmt::format("{}", x), fmt::format("{}", y)});
  };
  // What goes into a step comes before what came out of it: it may be the cause.
  number("lr", a.lr, b.lr);
  if (a.count != b.count) list.push_back({"count", fmt::format("{}", a.count), fmt::format("{}", b.count)});
  number("loss", a.loss, b.loss);
  number("grad_norm", a.grad_norm, b.grad_norm);
  const auto action = [](const StepRecord& record) {
    return record.action.empty() ? "applied" : record.action;
  };
  if (a.action != b.action) list.push_back({"action", action(a), action(b)});
  return list;
}

void compare_steps(const RunView& first, const RunView& second, RunComparison& result) {
  auto a = first.steps.begin();
  auto b = second.steps.begin();
  while (a != first.steps.end() && b != second.steps.end()) {
    if (a->step != b->step) {
      a->step < b->step ? ++a : ++b;
      continue;
    }
    ++result.common_steps;
    if (!result.first_step) {
      result.values = differences(*a, *b);
      if (!result.values.empty()) result.first_step = a->step;
    }
    ++a;
    ++b;
  }
}

std::vector<Difference> identity_differences(const RunView& first, const RunView& second) {
  if (first.identity.empty() || second.identity.empty()) return {};
  const std::map<std::string, std::string> others(second.identity.begin(), second.identity.end());
  std::map<std::string, std::string> unseen = others;
  std::vector<Difference> list;
  for (const auto& [name, value] : first.identity) {
    const auto found = others.find(name);
    const std::string other = found == others.end() ? "" : found->second;
    if (other != value || found == others.end()) list.push_back({name, value, other});
    unseen.erase(name);
  }
  for (const auto& [name, value] : unseen) list.push_back({name, "", value});
  return list;
}

std::optional<bool> same_hash(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return std::nullopt;
  return a == b;
}

}  // namespace

RunComparison compare_runs(const RunView& first, const RunView& second) {
  RunComparison result;
  result.same_weights = same_hash(first.summary.weights_sha256, second.summary.weights_sha256);
  result.same_identity = same_hash(first.summary.identity_sha256, second.summary.identity_sha256);
  result.identity = identity_differences(first, second);
  if (!result.same_identity && !first.identity.empty() && !second.identity.empty())
    result.same_identity = result.identity.empty();
  compare_steps(first, second, result);
  return result;
}

}  // namespace lockstep
