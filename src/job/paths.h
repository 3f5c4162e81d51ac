// Paths as people write them in a job file. A job file is read by no shell, so `~` and `$NAME` are replaced
// here; addresses (gs://, s3://) are refused, since only files and folders are read and written.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// The value of an environment variable; nothing: it is not set.
using VariableValue = std::function<std::optional<std::string>(const std::string& name)>;

// `~` and `~/...` are the home folder, `$NAME` and `${NAME}` a variable, `$$` a dollar sign. Throws UserError
// that goes on after "output is ".
std::string expanded_path(std::string_view text, const VariableValue& variable);
// With the variables of this process.
std::string expanded_path(std::string_view text);
// The text that expanded_path() reads as this path.
std::string path_text(const std::string& path);

}  // namespace lockstep
