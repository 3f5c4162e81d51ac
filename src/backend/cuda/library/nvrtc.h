// NVRTC, the run-time compiler, loaded when the first kernel is generated.
#pragma once
#include <nvrtc.h>

#include <string>

namespace lockstep::cuda {

struct Nvrtc {
  decltype(&nvrtcVersion) version;
  decltype(&nvrtcGetErrorString) error_string;
  decltype(&nvrtcCreateProgram) create;
  decltype(&nvrtcDestroyProgram) destroy;
  decltype(&nvrtcCompileProgram) compile;
  decltype(&nvrtcGetProgramLogSize) log_size;
  decltype(&nvrtcGetProgramLog) log;
  decltype(&nvrtcGetCUBINSize) code_size;
  decltype(&nvrtcGetCUBIN) code;
  std::string path;
};

// MissingDevice where it cannot be loaded.
const Nvrtc& nvrtc();
// "13.0".
std::string nvrtc_version();
// Machine code for an architecture ("sm_90"). InternalError with the compiler's words where the source is
// wrong.
std::string compile_cuda(const std::string& source, const std::string& architecture);

}  // namespace lockstep::cuda
