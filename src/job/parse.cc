#include "job/parse.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "job/combine.h"
#include "job/fields.h"
#include "job/gather.h"
#include "job/open_model.h"
#include "job/value.h"
#include "job/workers.h"

namespace lockstep {
namespace {

class Filler {
 public:
  Filler(const Gathered& gathered, JobSpec& spec) : gathered_(gathered), spec_(spec) {}

  void fill() {
    for (const Field& field : job_fields())
      if (!field.is_ignored() && !field.path().starts_with("workerPoolSpecs"))
        fill_field(field, std::string(field.path()));
    for (size_t i = 0; i < gathered_.pools.size(); ++i) fill_pool(i);
  }

 private:
  void fill_pool(size_t index) {
    constexpr std::string_view kPools = "workerPoolSpecs[]";
    spec_.workerPoolSpecs.emplace_back();
    if (!gathered_.pools[index]) return;
    for (const Field& field : job_fields())
      if (!field.is_ignored() && field.path().starts_with(kPools))
        fill_field(field, fmt::format("workerPoolSpecs[{}]{}", index, field.path().substr(kPools.size())));
  }

  void fill_field(const Field& field, const std::string& path) {
    const Gathered::Value* given = gathered_.find(path);
    std::string_view fallback = field.fallback();
    if (!field.selector().empty()) {
      const std::optional<std::string_view> own = fallback_for_selector(field);
      if (!own && given != nullptr) does_not_belong(field, *given);
      if (!own) return;
      fallback = *own;
    }
    if (given != nullptr) {
      const Origin& origin = given->origin;
      const std::string key = origin.alias.empty() ? path : fmt::format("{} ({})", origin.alias, path);
      assign_value(field, given->node, {origin.place(), key}, spec_);
      spec_.origins[path] = origin;
      return;
    }
    if (is_from_model_file(field)) return;
    if (field.is_required()) missing(field);
    // The folder will say it (job/open_model.h).
    if (fallback.empty() && field.selector() == "model.family" && !spec_.model.hf.empty()) return;
    spec_.origins[path] = {};
    if (fallback.empty()) return;
    assign_value(field, read_yaml(fallback, path), {"the default", path}, spec_);
  }

  // The default under the selector's present value; nothing if the field is not there under it.
  std::optional<std::string_view> fallback_for_selector(const Field& field) const {
    const std::optional<std::string> selected = selected_of(field);
    for (const auto& [value, fallback] : field.cases())
      if (selected == value) return fallback;
    return std::nullopt;
  }

  std::optional<std::string> selected_of(const Field& field) const {
    if (field.selector() == "model.family" && !spec_.model.hf.empty()) return std::string(kOfFolder);
    if (field.selector() == "model.family" && !spec_.model.onnx.empty()) return std::nullopt;
    return value_text(*find_field(field.selector()), spec_);
  }

  // model.family comes before model.hf in the table, so what was gathered is asked.
  bool is_from_model_file(const Field& field) const {
    return field.path() == "model.family" && (gathered_.find("model.hf") || gathered_.find("model.onnx"));
  }

  [[noreturn]] void does_not_belong(const Field& field, const Gathered::Value& given) const {
    const std::string_view key =
        given.origin.alias.empty() ? field.path() : std::string_view(given.origin.alias);
    const std::string selected = selected_of(field).value_or("none");
    std::vector<std::string_view> others;
    for (const Field& other : job_fields())
      if (other.selector() == field.selector())
        for (const auto& [value, fallback] : other.cases())
          if (value == selected) others.push_back(other.path().substr(other.path().rfind('.') + 1));
    if (others.empty()) {
      std::vector<std::string_view> values;
      for (const auto& [value, fallback] : field.cases()) values.push_back(value);
      throw UserError("{}: {} does not go with {} {}; remove it, or write {}", given.origin.place(), key,
                      field.selector(), selected, fmt::join(values, " or "));
    }
    const std::string with = selected == kOfFolder ? fmt::format("model.hf {}", spec_.model.hf)
                                                   : fmt::format("{} {}", field.selector(), selected);
    throw UserError("{}: {} does not go with {}; remove it (what goes with it: {})", given.origin.place(),
                    key, with, fmt::join(others, ", "));
  }

  [[noreturn]] void missing(const Field& field) const {
    const std::string_view path = field.path();
    const size_t dot = path.rfind('.');
    throw UserError("{}: {} is missing; write {} `{}: {}` under {}", spec_.file, path,
                    field.choices().empty() ? "for example" : fmt::format("{}, as in", field.expectation()),
                    path.substr(dot + 1), field.sample(), path.substr(0, dot));
  }

  const Gathered& gathered_;
  JobSpec& spec_;
};

void fill_names(JobSpec& spec) {
  if (spec.name.empty()) {
    spec.name = std::filesystem::path(spec.file).stem().string();
    spec.origins["name"] = {.kind = Origin::Kind::kDerived, .how = "the file's name"};
  }
  if (spec.output.empty()) {
    spec.output = "runs/" + spec.name;
    spec.origins["output"] = {.kind = Origin::Kind::kDerived, .how = "from the name"};
  }
}

// One of two that say the same thing, or neither, would leave the choice to us.
void check_pairs(const JobSpec& spec) {
  if (spec.train.steps && spec.train.epochs)
    throw UserError("{}: train.steps and train.epochs ({}) both say how long to train; keep one of them",
                    spec.where("train.steps"), spec.where("train.epochs"));
  if (!spec.train.steps && !spec.train.epochs)
    throw UserError("{}: train.steps is missing; write for example `steps: 2000` under train, or `epochs: 3`",
                    spec.file);
  for (const auto& [path, text] : {std::pair{"model.hf", &spec.model.hf}, {"model.onnx", &spec.model.onnx}})
    if (!text->empty() && spec.model.family != nullptr)
      throw UserError("{}: {} and model.family ({}) both name a model; keep one of them", spec.where(path),
                      path, spec.where("model.family"));
  if (!spec.model.hf.empty() && !spec.model.onnx.empty())
    throw UserError("{}: model.hf and model.onnx ({}) both name a model; keep one of them",
                    spec.where("model.hf"), spec.where("model.onnx"));
}

}  // namespace

JobSpec parse_job(std::string_view text, const std::string& file, std::span<const std::string> overrides) {
  Gathered gathered;
  gather_file(read_yaml(text, file), file, gathered);
  for (const std::string& override : overrides) gather_override(override, gathered);
  combine(gathered);
  JobSpec spec;
  spec.file = file;
  spec.notes = std::move(gathered.notes);
  Filler(gathered, spec).fill();
  fill_names(spec);
  check_pairs(spec);
  settle_servers(spec);
  return spec;
}

JobSpec read_job(const std::string& path, std::span<const std::string> overrides) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (!std::filesystem::exists(status))
    throw UserError("{}: there is no such file; `lockstep init --template gpt {}` writes one", path, path);
  if (std::filesystem::is_directory(status))
    throw UserError("{}: is a folder; name the job file in it", path);
  // A pipe has no size, so at most one byte more than is accepted is read of anything.
  const int64_t limit = YamlLimits{}.bytes;
  std::string text(static_cast<size_t>(limit) + 1, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (in.fail() && !in.eof()))
    throw UserError("{}: cannot be read; check its permissions", path);
  text.resize(static_cast<size_t>(in.gcount()));
  if (static_cast<int64_t>(text.size()) > limit)
    throw UserError(
        "{}: more than {} bytes are too many for a job file; name data files under data.train.files", path,
        limit);
  return parse_job(text, path, overrides);
}

JobSpec load_job(const std::string& path, std::span<const std::string> overrides) {
  JobSpec spec = read_job(path, overrides);
  open_model(spec);
  return spec;
}

}  // namespace lockstep
