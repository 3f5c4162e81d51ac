#include "job/print.h"

#include <fmt/format.h>

#include <algorithm>

#include "job/fields.h"
#include "job/value.h"

namespace lockstep {
namespace {

constexpr size_t kCommentColumn = 48;

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> names;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    names.push_back(path.substr(0, dot));
    path.remove_prefix(dot + 1);
  }
  names.push_back(path);
  return names;
}

class Printer {
 public:
  // Opens the sections of a path as far as they are not open, and prints its value.
  void value(std::string_view path, const std::string& text, const std::string& comment) {
    const std::vector<std::string_view> names = split(path);
    size_t shared = 0;
    while (shared + 1 < names.size() && shared < open_.size() && open_[shared] == names[shared]) ++shared;
    open_.resize(shared);
    for (; shared + 1 < names.size(); ++shared) {
      out_ += fmt::format("{:{}}{}:\n", "", indent(), names[shared]);
      open_.emplace_back(names[shared]);
    }
    line(fmt::format("{:{}}{}: {}", "", indent(), names.back(), text), comment);
  }

  void pool(size_t index, const JobSpec& spec) {
    if (index == 0) out_ += "workerPoolSpecs:\n";
    const WorkerPool& pool = spec.workerPoolSpecs[index];
    if (pool.machineSpec.machineType.empty()) return line("  - {}", "no machines");
    std::string machine = fmt::format("machineType: {}", quoted_if_needed(pool.machineSpec.machineType));
    if (!pool.machineSpec.acceleratorType.empty())
      machine += fmt::format(", acceleratorType: {}", quoted_if_needed(pool.machineSpec.acceleratorType));
    if (pool.machineSpec.acceleratorCount > 0)
      machine += fmt::format(", acceleratorCount: {}", pool.machineSpec.acceleratorCount);
    line(fmt::format("  - {{machineSpec: {{{}}}, replicaCount: {}}}", machine, pool.replicaCount), "");
  }

  void close() { open_.clear(); }
  std::string take() { return std::move(out_); }

 private:
  size_t indent() const { return 2 * open_.size(); }
  void line(std::string text, const std::string& comment) {
    if (!comment.empty()) text = fmt::format("{:<{}}  # {}", text, kCommentColumn, comment);
    out_ += text + "\n";
  }

  std::string out_;
  std::vector<std::string> open_;
};

}  // namespace

std::string to_yaml(const JobSpec& spec) {
  Printer printer;
  bool pools_done = false;
  for (const Field& field : job_fields()) {
    if (field.path().starts_with("workerPoolSpecs")) {
      printer.close();
      for (size_t i = 0; !pools_done && i < spec.workerPoolSpecs.size(); ++i) printer.pool(i, spec);
      pools_done = true;
      continue;
    }
    const auto origin = spec.origins.find(std::string(field.path()));
    if (origin == spec.origins.end()) continue;
    // Printed it would be taken for something that was asked for.
    const Field* companion = field.companion().empty() ? nullptr : find_field(field.companion());
    if (companion != nullptr && origin->second.kind == Origin::Kind::kDefault &&
        !value_text(*companion, spec))
      continue;
    const std::optional<std::string> text = value_text(field, spec);
    if (text) printer.value(field.path(), *text, origin->second.comment());
  }
  return printer.take();
}

}  // namespace lockstep
