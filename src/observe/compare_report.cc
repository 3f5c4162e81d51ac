// The words of a comparison of two runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "observe/progress_text.h"
#include "observe/run_compare.h"
#include "observe/run_facts.h"

namespace lockstep {
namespace {

constexpr size_t kShownHash = 12;

std::string cell(const Fact* fact) {
  if (fact == nullptr) return "-";
  const bool hash = fact->name == "weights" || fact->name == "identity";
  return hash ? fact->text.substr(0, kShownHash) : fact->text;
}

std::string change(const Fact* first, const Fact* second) {
  if (first == nullptr || second == nullptr || first->kind == Fact::Kind::kUncompared) return "";
  if (first->kind == Fact::Kind::kText) return first->text == second->text ? "" : "differs";
  if (first->amount == second->amount) return "";
  const double percent = 100 * (second->amount / first->amount - 1);
  if (!std::isfinite(percent)) return "differs";
  // A difference that rounds to nothing is still one.
  if (std::abs(percent) < 0.05) return fmt::format("{:+.1e} %", percent);
  return fmt::format("{:+.1f} %", percent);
}

const Fact* find(const std::vector<Fact>& facts, const std::string& name) {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? nullptr : &*found;
}

// The names of both lists, each once: those of the first, and what only the second has where it stands there.
std::vector<std::string> names_of(const std::vector<Fact>& first, const std::vector<Fact>& second) {
  std::vector<std::string> names;
  for (const Fact& fact : first) names.push_back(fact.name);
  auto place = names.begin();
  for (const Fact& fact : second) {
    const auto found = std::ranges::find(names, fact.name);
    place = std::next(found != names.end() ? found : names.insert(place, fact.name));
  }
  return names;
}

std::string table(const RunView& first, const RunView& second) {
  const std::vector<Fact> a = run_facts(first), b = run_facts(second);
  size_t width = std::max<size_t>(12, first.folder.size());
  for (const Fact& fact : a)
    if (fact.name != "reason") width = std::max(width, cell(&fact).size());
  size_t second_width = std::max<size_t>(12, second.folder.size());
  for (const Fact& fact : b)
    if (fact.name != "reason") second_width = std::max(second_width, cell(&fact).size());
  std::string text =
      fmt::format("{:18}{:{}}  {}\n", "", printable(first.folder), width, printable(second.folder));
  for (const std::string& name : names_of(a, b)) {
    const Fact *left = find(a, name), *right = find(b, name);
    std::string line = fmt::format("{:<18}{:{}}  {:{}}  {}", name, cell(left), width, cell(right),
                                   second_width, change(left, right));
    text += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string list(const std::vector<Difference>& differences) {
  std::string text;
  for (const auto& [name, first, second] : differences)
    text += fmt::format("  {}: {} and {}\n", printable(name), first.empty() ? "none" : printable(first),
                        second.empty() ? "none" : printable(second));
  return text;
}

std::string weights_sentence(const RunView& first, const RunView& second, const RunComparison& bits) {
  if (!bits.same_weights) return "Weights: not known of both runs; there is a hash when a run has ended.\n";
  if (*bits.same_weights) return "Weights: the same bits.\n";
  const int64_t a = first.summary.steps, b = second.summary.steps;
  if (a != b) return fmt::format("Weights: they differ; the runs have made {} and {} steps.\n", a, b);
  // Of equal identity this is what must never happen.
  if (bits.same_identity.value_or(false))
    return "Weights: they differ although identity and steps are equal: this is a bug in Lockstep, please "
           "report "
           "it.\n";
  return "Weights: they differ.\n";
}

std::string identity_sentence(const RunComparison& bits) {
  if (!bits.same_identity) return "Identity: not known of both runs.\n";
  if (*bits.same_identity) return "Identity: equal; equal steps must give equal bits.\n";
  if (bits.identity.empty())
    return "Identity: differs; a run lacks identity.json, which would tell in what.\n";
  return "Identity: differs in\n" + list(bits.identity);
}

std::string steps_sentence(const RunComparison& bits) {
  if (bits.common_steps == 0) return "Steps: there is none that both have logged.\n";
  if (!bits.first_step)
    return fmt::format("Steps: the {} that both have logged agree in every bit of loss and gradient norm.\n",
                       bits.common_steps);
  return fmt::format("Steps: of the {} that both have logged, step {} is the first to differ:\n",
                     bits.common_steps, *bits.first_step) +
         list(bits.values);
}

}  // namespace

std::string comparison_report(const RunView& first, const RunView& second) {
  const RunComparison bits = compare_runs(first, second);
  std::string text = table(first, second) + "\n";
  for (const RunView* run : {&first, &second})
    if (!run->finished)
      text += fmt::format(
          "{} has no summary.json: it goes on, or was killed; its figures are from metrics.jsonl.\n",
          printable(run->folder));
  return text + weights_sentence(first, second, bits) + identity_sentence(bits) + steps_sentence(bits);
}

}  // namespace lockstep
