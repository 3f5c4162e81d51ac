#include "run/run_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "job/print.h"

namespace lockstep {

std::vector<NamedText> describing_files(const JobParts& parts) {
  std::vector<NamedText> files = {{"job.yaml", to_yaml(parts.spec)},
                                  {"identity.json", to_json(parts.identity).dump(1) + "\n"}};
  if (!parts.data.encoding.empty()) files.emplace_back("encoding.txt", parts.data.encoding);
  return files;
}

void open_run_folder(const std::string& folder, const std::vector<NamedText>& files) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UserError("cannot make the output folder {}: {}", folder, error.message());
  for (const std::string& old : {summary_path(folder), diagnosis_path(folder)})
    std::filesystem::remove(old, error);
  for (const auto& [name, content] : files) write_file(fmt::format("{}/{}", folder, name), content);
}

std::string summary_path(const std::string& folder) { return folder + "/summary.json"; }
std::string diagnosis_path(const std::string& folder) { return folder + "/diagnosis.json"; }

}  // namespace lockstep
