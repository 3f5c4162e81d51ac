#include "run/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/new_file.h"
#include "job/print.h"
#include "model/hf/base_folder.h"
#include "model/hf/source.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJobFile = "job.yaml";
// The first file that a run writes: a folder that has it is a run's.
constexpr const char* kIdentityFile = "identity.json";
constexpr const char* kStartsFile = "starts.jsonl";
constexpr const char* kLabelsFile = "labels.json";
constexpr auto kOtherFiles = std::to_array<const char*>(
    {kJobFile, "metrics.jsonl", "summary.json", "encoding.txt", kLabelsFile, "diagnosis.json"});

std::string in_folder(const std::string& folder, const char* name) {
  return fmt::format("{}/{}", folder, name);
}

// The folder itself, or the nearest one above it that is there.
fs::path existing_part(const fs::path& folder) {
  std::error_code failure;
  fs::path part = fs::absolute(folder, failure);
  while (!fs::exists(part, failure) && part.has_parent_path() && part != part.parent_path())
    part = part.parent_path();
  return part;
}

void require_writable(const JobSpec& spec, const char* key, const std::string& folder) {
  std::error_code failure;
  const fs::path there = existing_part(folder);
  if (!fs::is_directory(there, failure))
    throw UserError("{}: {} {}: {} is not a folder; choose another one", spec.where(key), key, folder,
                    there.string());
  if (::access(there.c_str(), W_OK | X_OK) != 0) throw_file_error("write into", there.string(), errno);
}

bool was_changed_by_set(const JobSpec& spec) {
  return std::any_of(spec.origins.begin(), spec.origins.end(), [](const auto& entry) {
    // Where a run is written does not change what it is.
    return entry.second.kind == Origin::Kind::kSet && entry.first != "output";
  });
}

bool is_start_of(const nlohmann::json& line, const std::string& identity) {
  if (!line.is_object()) return false;
  const auto found = line.find("identity_sha256");
  return found != line.end() && found->is_string() && found->get_ref<const std::string&>() == identity;
}

}  // namespace

std::vector<NamedText> describing_files(const JobParts& parts, JobSpec asked) {
  asked.model.task = parts.spec.model.task;
  if (const auto origin = parts.spec.origins.find("model.task"); origin != parts.spec.origins.end())
    asked.origins[origin->first] = origin->second;
  std::vector<NamedText> files = {{kIdentityFile, to_json(parts.identity).dump(1) + "\n"},
                                  {kJobFile, to_yaml(asked)}};
  if (const auto& source = parts.spec.model.source) {
    if (const std::string* hash = parts.identity.find(kWeightsField);
        hash != nullptr && !frozen_in_folder(parts).empty())
      files.emplace_back(kBaseFile, to_text(BaseFolder{fs::canonical(source->folder()).string(), *hash}));
    const bool narrow = parts.spec.train.precision == Precision::kBf16Pure;
    files.emplace_back("config.json",
                       config_with_dtype(source->config(), narrow ? DType::kBF16 : DType::kF32));
    for (auto& [name, content] : source->companions())
      files.emplace_back(std::move(name), std::move(content));
  }
  if (!parts.data.encoding.empty()) files.emplace_back("encoding.txt", parts.data.encoding);
  if (parts.data.labels) files.emplace_back(kLabelsFile, parts.data.labels->json() + "\n");
  return files;
}

LabelEncoding read_labels(const std::string& folder) {
  const std::string path = in_folder(folder, kLabelsFile);
  return labels_from_json(read_file(path, int64_t{1} << 24), path);
}

void require_run_folder(const JobSpec& spec) {
  require_writable(spec, "output", spec.output);
  if (!spec.checkpoint.dir.empty()) require_writable(spec, "checkpoint.dir", spec.checkpoint.dir);
  std::error_code failure;
  if (fs::exists(in_folder(spec.output, kIdentityFile), failure)) return;
  for (const char* name : kOtherFiles)
    if (fs::exists(in_folder(spec.output, name), failure))
      throw UserError(
          "{}: output {} holds {}, which no run has written and this one would overwrite; choose another "
          "output, for example runs/{}",
          spec.where("output"), spec.output, name, spec.name);
}

void open_run_folder(const JobSpec& spec, const std::vector<NamedText>& files) {
  const std::string& folder = spec.output;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw UserError("cannot make the output folder {}: {}", folder, error.message());
  for (const std::string& old : {summary_path(folder), diagnosis_path(folder)}) fs::remove(old, error);
  // Of a start that was killed while it wrote: the folder is this process's alone.
  std::vector<fs::path> partials;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (!finished_path(entry.path().string()).empty()) partials.push_back(entry.path());
  for (const fs::path& partial : partials) fs::remove(partial, error);
  for (const auto& [name, content] : files) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (name == kJobFile && !was_changed_by_set(spec) && fs::equivalent(spec.file, path, error)) continue;
    write_file(path, content);
  }
}

int64_t record_start(const std::string& folder, const RunStart& start, bool fresh) {
  const std::string path = in_folder(folder, kStartsFile);
  std::string kept;
  int64_t before = 0;
  std::error_code failure;
  if (!fresh && fs::exists(path, failure)) {
    std::istringstream lines(read_file(path));
    for (std::string line; std::getline(lines, line);) {
      if (!is_start_of(nlohmann::json::parse(line, nullptr, false), start.identity)) continue;
      kept += line + "\n";
      ++before;
    }
  }
  const nlohmann::ordered_json line = {{"time", start.time},
                                       {"step", start.step},
                                       {"workers", start.workers},
                                       {"identity_sha256", start.identity}};
  write_file(path, kept + line.dump() + "\n");
  return before;
}

std::string summary_path(const std::string& folder) { return folder + "/summary.json"; }
std::string diagnosis_path(const std::string& folder) { return folder + "/diagnosis.json"; }

}  // namespace lockstep
