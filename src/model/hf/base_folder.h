// Where the frozen weights of a checkpoint lie that holds only what was trained beside them: the Hugging Face
// folder that its run began with, and the hash of what was taken from there.
#pragma once
#include <string>
#include <string_view>

#include "model/hf/source.h"

namespace lockstep {

inline constexpr const char* kBaseFile = "base.json";  // of a checkpoint

struct BaseFolder {
  std::string folder;  // absolute
  std::string sha256;  // hash_of_weights over all that the run took from it
};

std::string to_text(const BaseFolder& base);
// Throws UserError that begins with `path`.
BaseFolder parse_base_folder(std::string_view text, const std::string& path);

// Reads every byte that is taken, once. Throws UserError unless these are the weights that the checkpoint's
// run began with.
void require_base_weights(const HfSource& source, const BaseFolder& base, const std::string& checkpoint,
                          int threads);

}  // namespace lockstep
