// Reads bytes through a columnar format, for the fuzz targets of these.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "data/format/format.h"

namespace lockstep::testing {

using MakeFormat = std::function<std::unique_ptr<Format>(const FormatOptions& options)>;

// All records under both policies for bad ones; those read in two parts must be those read at once. Returns
// whether everything could be read. Throws for anything but a UserError: that is a bug.
bool check_columnar(const MakeFormat& make, std::string_view bytes);

}  // namespace lockstep::testing
