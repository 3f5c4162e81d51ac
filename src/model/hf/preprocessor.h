// How a folder's model wants its images: preprocessor_config.json. What it asks for and this program does not
// do is refused by the name of the key.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

struct HfPreprocessor {
  std::string path;
  int64_t size = 0;  // pixels along a side
  // The whole image is stretched to the square; otherwise its short side is scaled to `short_side` and the
  // middle is taken.
  bool stretched = true;
  int64_t short_side = 0;
  std::array<double, 3> mean{0.5, 0.5, 0.5}, deviation{0.5, 0.5, 0.5};
};

// Nothing where the folder has no such file. Throws UserError.
std::optional<HfPreprocessor> read_preprocessor(const std::string& folder);
// `where` names the text in errors.
HfPreprocessor parse_preprocessor(std::string_view text, const std::string& where);

}  // namespace lockstep
