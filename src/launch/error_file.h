// The file in which a worker says what it failed of, in torchrun's format, so that the launcher can tell the
// error that came first from those that followed from it.
#pragma once
#include <optional>
#include <string>

#include "launch/variables.h"

namespace lockstep {

// Writes to TORCHELASTIC_ERROR_FILE, if it is set: to be called as soon as an error is caught. Never throws:
// there is already something more important to report.
void write_error_file(const Variables& variables, const std::string& message, int exit_code) noexcept;

// When the error of the file came up, in seconds since 1970; nothing if there is no such file or it cannot be
// read.
std::optional<double> error_time(const std::string& path);

}  // namespace lockstep
