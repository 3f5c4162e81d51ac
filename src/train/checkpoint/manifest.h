// The manifest of a checkpoint: every file with its size and SHA-256, and for files of tensors where each
// tensor lies and its checksum, so that damage can be named even where a file's own header is damaged.
//
// manifest.json is written after all files that it names, and `manifest.sha256` after it; the latter holds
// one line as sha256sum prints it, and so does each file's hash agree with sha256sum.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors/file_record.h"

namespace lockstep {

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kManifestHashFile = "manifest.sha256";

// Writes both files into the folder, durably.
void write_manifest(const std::string& folder, int64_t step, const std::vector<FileRecord>& files);

struct CheckpointManifest {
  int64_t step = 0;
  std::vector<FileRecord> files;
};

// Reads it and checks its own hash; throws UserError that names the file at fault.
CheckpointManifest read_manifest(const std::string& folder);

// As manifest.json has it, and back. Throws UserError that begins with `path` for any other text.
std::string manifest_text(int64_t step, const std::vector<FileRecord>& files);
CheckpointManifest parse_manifest(std::string_view text, const std::string& path);

// Reads the whole file and compares; throws UserError that names the file, and the tensor or the header where
// the difference lies.
void verify_file(const std::string& folder, const FileRecord& file);

}  // namespace lockstep
