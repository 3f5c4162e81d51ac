#include "fuzz/image.h"

#include "base/error.h"
#include "data/pixels/decode.h"
#include "fuzz/repair.h"

namespace lockstep::testing {
namespace {

bool check(std::string_view bytes) {
  constexpr int64_t kMost = 1 << 20;  // pixels, to keep an input cheap
  ImageExtent full, again;
  Pixels pixels, same;
  const auto whole = [](ImageExtent extent) {
    return WantedPart{extent.width * extent.height > kMost ? 1 : 8};
  };
  const std::string problem = decode_image(bytes, whole, full, pixels);
  LOCKSTEP_CHECK(decode_image(bytes, whole, again, same) == problem, "another verdict when it is read again");
  LOCKSTEP_CHECK(image_problem(bytes).empty() == problem.empty(), "another verdict at another scale: {}",
                 problem);
  if (!problem.empty()) return false;
  LOCKSTEP_CHECK(pixels.rgb == same.rgb, "other pixels when it is read again");
  const auto middle = [](ImageExtent extent) {
    return WantedPart{8, extent.width / 3, extent.height / 3, (extent.width + 2) / 3,
                      (extent.height + 2) / 3};
  };
  LOCKSTEP_CHECK(decode_image(bytes, middle, again, same).empty(), "another verdict on a part of it");
  LOCKSTEP_CHECK(static_cast<int64_t>(pixels.rgb.size()) == pixels.width * pixels.height * 3, "{} by {}",
                 pixels.width, pixels.height);
  return full.width > 0 && full.height > 0;
}

}  // namespace

bool check_image(std::string_view bytes) {
  if (check(bytes)) return true;
  if (is_png(bytes)) check(repaired_png(bytes));
  return false;
}

}  // namespace lockstep::testing
