#include "train/checkpoint/manifest.h"

#include <nlohmann/json.hpp>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr int64_t kMaxManifest = int64_t{1} << 28;

std::string hash_line(const std::string& manifest) {
  return fmt::format("{}  {}\n", sha256(manifest), kManifestFile);
}

Json to_json(const FileRecord& file) {
  Json entry = {{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}};
  for (const TensorRecord& tensor : file.tensors)
    entry["tensors"].push_back({{"name", tensor.name},
                                {"begin", tensor.begin},
                                {"end", tensor.end},
                                {"checksum", fmt::format("{:016x}", tensor.checksum)}});
  return entry;
}

// Not get(): that would take any other number too, and one that is no int64 at that.
int64_t whole(const Json& number) { return number.get_ref<const int64_t&>(); }

FileRecord file_from_json(const Json& entry) {
  FileRecord file{entry.at("name").get<std::string>(),
                  whole(entry.at("bytes")),
                  entry.at("sha256").get<std::string>(),
                  {}};
  // A manifest that somebody wrote by hand must not lead out of its folder.
  if (file.name.empty() || file.name.front() == '.' || file.name.find('/') != std::string::npos)
    throw UserError("{} is no name of a file in a checkpoint", file.name);
  if (!entry.contains("tensors")) return file;
  for (const Json& tensor : entry.at("tensors")) {
    TensorRecord record{tensor.at("name").get<std::string>(), whole(tensor.at("begin")),
                        whole(tensor.at("end")),

                        std::stoull(tensor.at("checksum").get<std::string>(), nullptr, 16)};
    if (record.begin < 0 || record.end < record.begin || record.end > file.bytes)
      throw UserError("tensor {} does not lie inside of {}", record.name, file.name);
    file.tensors.push_back(std::move(record));
  }
  return file;
}

}  // namespace

std::string manifest_text(int64_t step, const std::vector<FileRecord>& files) {
  Json manifest = {
      {"format", "lockstep checkpoint"}, {"version", kVersion}, {"step", step}, {"files", Json::array()}};
  for (const FileRecord& file : files) manifest["files"].push_back(to_json(file));
  return manifest.dump(1) + "\n";
}

void write_manifest(const std::string& folder, int64_t step, const std::vector<FileRecord>& files) {
  const std::string text = manifest_text(step, files);
  DurableFile json(folder + "/" + kManifestFile);
  json.write(text);
  json.finish();
  DurableFile hash(folder + "/" + kManifestHashFile);
  hash.write(hash_line(text));
  hash.finish();
}

CheckpointManifest read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestFile;
  const std::string text = read_file(path, kMaxManifest);
  if (read_file(folder + "/" + kManifestHashFile, 4096) != hash_line(text))
    throw UserError(
        "{}: {} does not have the hash that {} gives; one of the two was changed after it was written",
        folder, kManifestFile, kManifestHashFile);
  return parse_manifest(text, path);
}

CheckpointManifest parse_manifest(std::string_view text, const std::string& path) {
  try {
    const Json json = Json::parse(text);
    if (whole(json.at("version")) != kVersion)
      throw UserError("version {} is not {}, the one this program reads", whole(json.at("version")),
                      kVersion);
    CheckpointManifest manifest{whole(json.at("step")), {}};
    for (const Json& file : json.at("files")) manifest.files.push_back(file_from_json(file));
    return manifest;
  } catch (const std::exception& error) {
    throw UserError("{}: {}", path, error.what());
  }
}

}  // namespace lockstep
