// Comparison of a checkpoint's file with its record in the manifest.
#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/file_reader.h"
#include "base/sha256.h"
#include "safetensors/fold.h"
#include "train/checkpoint/manifest.h"

namespace lockstep {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;

// Calls visit(span) with the bytes [begin, end) in order, a piece at a time.
template <typename Visit>
void for_pieces(const FileReader& file, int64_t begin, int64_t end, const Visit& visit) {
  const auto buffer =
      std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(std::min(kPiece, end - begin)));
  while (begin < end) {
    const std::span piece(buffer.get(), static_cast<size_t>(std::min(kPiece, end - begin)));
    file.read(begin, piece);
    visit(piece);
    begin += static_cast<int64_t>(piece.size());
  }
}

std::string place_of_damage(const FileReader& reader, const FileRecord& file) {
  for (const TensorRecord& tensor : file.tensors) {
    Fold fold;
    for_pieces(reader, tensor.begin, tensor.end,
               [&](std::span<const std::byte> piece) { fold.update(piece); });
    if (fold.value() != tensor.checksum)
      return fmt::format(" in tensor {} (bytes {} to {})", tensor.name, tensor.begin, tensor.end);
  }
  return file.tensors.empty() ? "" : " in its header";
}

}  // namespace

void verify_file(const std::string& folder, const FileRecord& file) {
  const FileReader reader(folder + "/" + file.name);
  constexpr const char* kAdvice = "copy this checkpoint again, or use another";
  if (reader.bytes() != file.bytes)
    throw UserError("{} has {} bytes, {} were written; {}", reader.path(), reader.bytes(), file.bytes,
                    kAdvice);
  Sha256 hash;
  for_pieces(reader, 0, file.bytes, [&](std::span<const std::byte> piece) { hash.update(piece); });
  if (hash.finish() != file.sha256)
    throw UserError("{} was changed after it was written{}: its SHA-256 is not the one in {}; {}",
                    reader.path(), place_of_damage(reader, file), kManifestFile, kAdvice);
}

}  // namespace lockstep
