// SharedLibrary: a library of the CUDA toolkit that is loaded when it is first needed, and never unloaded.
//
// None of them is linked: the same program runs on a machine without a GPU, and a run pays only for what its
// plan uses (cuBLASLt alone is half a gigabyte on disk).
#pragma once
#include <string>
#include <vector>

namespace lockstep::cuda {

class SharedLibrary {
 public:
  // Tries the names in order. MissingDevice with the loader's words, where it looked and what to do when
  // none can be loaded.
  SharedLibrary(const std::vector<std::string>& names, const std::string& needed_for);

  template <typename Function>
  void find(const char* symbol, Function& function) const {
    function = reinterpret_cast<Function>(address(symbol));
  }
  void* handle() const { return handle_; }
  // Where it was found.
  const std::string& path() const { return path_; }

 private:
  void* address(const char* symbol) const;
  void read_ahead() const;

  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace lockstep::cuda
