#include "run/worker_facts.h"

#include <algorithm>
#include <array>

#include "job/fields.h"
#include "job/value.h"

namespace lockstep {
namespace {

// Beside the identity. Paths, threads and memory may differ from host to host.
constexpr auto kPaths = std::to_array<std::string_view>(
    {"data.eval.", "data.hold_out", "train.eval.", "train.early_stop.", "checkpoint.every",
     "strategy.deadline", "strategy.reduce.", "strategy.transport", "strategy.zero", "strategy.zero_group"});

bool is_shared(std::string_view path) {
  if (path.ends_with(".files")) return false;
  return std::any_of(kPaths.begin(), kPaths.end(), [&](std::string_view entry) {
    return entry.ends_with('.') ? path.starts_with(entry) : path == entry;
  });
}

}  // namespace

std::map<std::string, std::string> shared_facts(const JobParts& parts) {
  std::map<std::string, std::string> facts;
  const Identity shared = shared_part(parts.identity);
  for (const Identity::Field& field : shared.fields()) facts[field.name] = field.value;
  for (const Field& field : job_fields()) {
    if (!is_shared(field.path()) || !parts.spec.origins.contains(std::string(field.path()))) continue;
    if (const auto text = value_text(field, parts.spec)) facts[std::string(field.path())] = *text;
  }
  facts["train.steps"] = std::to_string(parts.steps());
  return facts;
}

}  // namespace lockstep
