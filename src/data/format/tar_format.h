// Tar shards of images in WebDataset naming: neighbouring members whose names agree up to the first dot after
// the last slash are one record. It has one image (.jpg, .jpeg, .png) and one class: .cls holds it as text,
// .json under the key label, cls or class. Other members of a record are passed over.
#pragma once
#include <memory>

#include "data/format/format.h"

namespace lockstep {

std::unique_ptr<Format> make_tar_format(const FormatOptions& options);

}  // namespace lockstep
