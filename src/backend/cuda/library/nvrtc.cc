#include "backend/cuda/library/nvrtc.h"

#include <array>

#include "backend/cuda/library/shared_library.h"
#include "base/error.h"

namespace lockstep::cuda {
namespace {

Nvrtc load() {
  const SharedLibrary library({"libnvrtc.so.13", "libnvrtc.so"}, "training on a GPU");
  Nvrtc rtc{};
  library.find("nvrtcVersion", rtc.version);
  library.find("nvrtcGetErrorString", rtc.error_string);
  library.find("nvrtcCreateProgram", rtc.create);
  library.find("nvrtcDestroyProgram", rtc.destroy);
  library.find("nvrtcCompileProgram", rtc.compile);
  library.find("nvrtcGetProgramLogSize", rtc.log_size);
  library.find("nvrtcGetProgramLog", rtc.log);
  library.find("nvrtcGetCUBINSize", rtc.code_size);
  library.find("nvrtcGetCUBIN", rtc.code);
  rtc.path = library.path();
  return rtc;
}

void require(nvrtcResult result, const char* what) {
  if (result != NVRTC_SUCCESS) throw DeviceError("NVRTC: {}: {}", what, nvrtc().error_string(result));
}

class Program {
 public:
  explicit Program(const std::string& source) {
    require(nvrtc().create(&program_, source.c_str(), "generated.cu", 0, nullptr, nullptr), "a program");
  }
  ~Program() { nvrtc().destroy(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  nvrtcProgram handle() const { return program_; }

  std::string log() const {
    size_t size = 0;
    nvrtc().log_size(program_, &size);
    std::string text(size, '\0');
    nvrtc().log(program_, text.data());
    return text;
  }

 private:
  nvrtcProgram program_ = nullptr;
};

}  // namespace

const Nvrtc& nvrtc() {
  static const Nvrtc loaded = load();
  return loaded;
}

std::string nvrtc_version() {
  int major = 0, minor = 0;
  require(nvrtc().version(&major, &minor), "its version");
  return fmt::format("{}.{}", major, minor);
}

std::string compile_cuda(const std::string& source, const std::string& architecture) {
  const Program program(source);
  const std::string target = "--gpu-architecture=" + architecture;
  // Contraction is decided by the code here too.
  const std::array options{target.c_str(), "--std=c++17", "--fmad=false", "--minimal"};
  const nvrtcResult result =
      nvrtc().compile(program.handle(), static_cast<int>(options.size()), options.data());
  if (result != NVRTC_SUCCESS)
    throw InternalError("a generated kernel does not compile: {}\n{}\n{}", nvrtc().error_string(result),
                        program.log(), source);
  size_t size = 0;
  require(nvrtc().code_size(program.handle(), &size), "the size of the code");
  std::string code(size, '\0');
  require(nvrtc().code(program.handle(), code.data()), "the code");
  return code;
}

}  // namespace lockstep::cuda
