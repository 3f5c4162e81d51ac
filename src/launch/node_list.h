// Slurm's two compressed lists: hosts (gpu[001-004,007],login1) and tasks per host (4(x2),3).
//
// Both expand to something bounded, so that a list made to be huge is an error and not a full memory.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr size_t kMostNodes = 65536;

// Several brackets in one name multiply (rack[1-2]n[1-3]). UserError names the variable `name`.
std::vector<std::string> expand_node_list(std::string_view list, std::string_view name);
std::vector<int64_t> expand_tasks_per_node(std::string_view list, std::string_view name);

}  // namespace lockstep
