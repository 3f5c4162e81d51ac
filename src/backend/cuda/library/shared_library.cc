#include "backend/cuda/library/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include "base/error.h"

namespace lockstep::cuda {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names, const std::string& needed_for) {
  std::string tried;
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) break;
    tried += fmt::format("{}{}", tried.empty() ? "" : "; ", dlerror());
  }
  if (handle_ == nullptr)
    throw UserError("{} needs a library that cannot be loaded: {}; install it or set LD_LIBRARY_PATH",
                    needed_for, tried);
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path_ = map->l_name;
}

void* SharedLibrary::address(const char* symbol) const {
  void* const found = dlsym(handle_, symbol);
  if (found == nullptr) throw UserError("{} has no {}; its version does not fit", path_, symbol);
  return found;
}

}  // namespace lockstep::cuda
