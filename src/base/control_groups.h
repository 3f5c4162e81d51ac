// The kernel's control groups that this process is in, and with it those above them, whose limits hold too.
#pragma once
#include <filesystem>
#include <string_view>
#include <vector>

namespace lockstep {

// The folders of a controller ("cpu", "memory"): in version 2 those of the one hierarchy, in version 1 those
// of the controller's own, each from the process's group up to the top. Not all of them exist: inside a
// container the path may not, and the top is the container's own.
std::vector<std::filesystem::path> control_groups(const std::filesystem::path& root,
                                                  std::string_view controller);

}  // namespace lockstep
