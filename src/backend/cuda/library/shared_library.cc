#include "backend/cuda/library/shared_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>

#include "base/does_not_fit.h"

namespace lockstep::cuda {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names, const std::string& needed_for) {
  std::string tried;
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) break;
    tried += fmt::format("{}{}", tried.empty() ? "" : "; ", dlerror());
  }
  if (handle_ == nullptr) {
    const char* const path = std::getenv("LD_LIBRARY_PATH");
    throw MissingDevice(
        "{} needs {}, which cannot be loaded: {}; looked for in LD_LIBRARY_PATH ({}) and where the system "
        "keeps "
        "its libraries: install it, or add its folder to LD_LIBRARY_PATH",
        needed_for, names.front(), tried, path == nullptr || *path == '\0' ? "not set" : path);
  }
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path_ = map->l_name;
  read_ahead();
}

// The code of its kernels is read as they are first used, in pieces from all over the file. Where the system
// does not have the file in memory that takes seconds, and in one go a fraction of one.
void SharedLibrary::read_ahead() const {
  const int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  posix_fadvise(file, 0, 0, POSIX_FADV_WILLNEED);
  close(file);
}

void* SharedLibrary::address(const char* symbol) const {
  void* const found = dlsym(handle_, symbol);
  if (found == nullptr) throw MissingDevice("{} has no {}; its version does not fit", path_, symbol);
  return found;
}

}  // namespace lockstep::cuda
