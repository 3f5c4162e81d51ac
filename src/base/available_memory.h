// How much memory this process may still take, by what the system says.
#pragma once
#include <cstdint>
#include <filesystem>

namespace lockstep {

// What the machine has available (MemAvailable), or less where the process's control group, or one above it,
// has a limit. 0 where the system does not say. `root` stands for "/" in tests.
int64_t available_memory_bytes(const std::filesystem::path& root = "/");

}  // namespace lockstep
