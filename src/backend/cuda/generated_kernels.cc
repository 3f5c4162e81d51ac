#include "backend/cuda/generated_kernels.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "backend/cuda/device.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/library/nvrtc.h"
#include "base/error.h"
#include "base/sha256.h"

namespace lockstep::cuda {
namespace {

std::filesystem::path cache_folder() {
  const auto variable = [](const char* name) -> std::string {
    const char* const text = std::getenv(name);
    return text == nullptr ? "" : text;
  };
  if (const std::string own = variable("LOCKSTEP_CACHE"); !own.empty()) return own;
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return std::filesystem::path(cache) / "lockstep";
  if (const std::string home = variable("HOME"); !home.empty())
    return std::filesystem::path(home) / ".cache" / "lockstep";
  return {};
}

// A file holds the hash of the code, then the code.
constexpr size_t kHashDigits = 64;

std::string read_code(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  std::ostringstream text;
  text << file.rdbuf();
  const std::string all = std::move(text).str();
  if (all.size() <= kHashDigits) return "";
  const std::string code = all.substr(kHashDigits);
  return sha256(code) == all.substr(0, kHashDigits) ? code : "";
}

// Whole or not at all: other processes may read and write the same file. A disk that takes nothing is no
// error.
void write_code(const std::filesystem::path& path, const std::string& code) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  const std::filesystem::path partial = fmt::format("{}.{}", path.string(), getpid());
  std::ofstream file(partial, std::ios::binary);
  file << sha256(code) << code;
  file.close();
  if (file)
    std::filesystem::rename(partial, path, error);
  else
    std::filesystem::remove(partial, error);
}

}  // namespace

GeneratedKernels::GeneratedKernels(const Device& device)
    : architecture_(fmt::format("sm_{}{}", device.properties().major, device.properties().minor)),
      compiler_(nvrtc_version()),
      folder_(cache_folder()) {}

GeneratedKernels::~GeneratedKernels() {
  for (const auto& [source, loaded] : loaded_) cudaLibraryUnload(loaded.library);
}

std::string GeneratedKernels::code_of(const std::string& source) const {
  if (folder_.empty()) return compile_cuda(source, architecture_);
  const std::string name = sha256(fmt::format("{} {}\n{}", compiler_, architecture_, source));
  const std::filesystem::path path = folder_ / "cuda" / (name + ".cubin");
  std::string code = read_code(path);
  if (!code.empty()) return code;
  code = compile_cuda(source, architecture_);
  write_code(path, code);
  return code;
}

cudaKernel_t GeneratedKernels::get(const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto known = loaded_.find(source);
  if (known != loaded_.end()) return known->second.kernel;
  const std::string code = code_of(source);
  Loaded loaded{};
  require(cudaLibraryLoadData(&loaded.library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "loading a generated kernel");
  require(cudaLibraryGetKernel(&loaded.kernel, loaded.library, "kernel"), "a generated kernel");
  loaded_.emplace(source, loaded);
  return loaded.kernel;
}

std::string refuse_generated(Device& device) {
  try {
    device.generated();
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace lockstep::cuda
