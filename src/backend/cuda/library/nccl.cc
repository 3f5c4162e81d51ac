#include "backend/cuda/library/nccl.h"

#include "backend/cuda/library/shared_library.h"
#include "base/error.h"

namespace lockstep::cuda {
namespace {

constexpr int kOldest = 21400;  // communicators that do not block

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

Nccl load() {
  const SharedLibrary library({"libnccl.so.2", "libnccl.so"}, "exchanging between GPUs of several hosts");
  Nccl nccl{};
  int version = 0;
  library.find("ncclGetVersion", nccl.get_version);
  if (nccl.get_version(&version) != kNcclSuccess || version < kOldest)
    throw DeviceError("{} is NCCL {}, and {} or newer is needed", library.path(), version_text(version),
                      version_text(kOldest));
  library.find("ncclGetErrorString", nccl.error_string);
  library.find("ncclGetLastError", nccl.last_error);
  library.find("ncclGetUniqueId", nccl.unique_id);
  library.find("ncclCommInitRankConfig", nccl.init);
  library.find("ncclCommGetAsyncError", nccl.state);
  library.find("ncclCommAbort", nccl.abort);
  library.find("ncclGroupStart", nccl.group_start);
  library.find("ncclGroupEnd", nccl.group_end);
  library.find("ncclSend", nccl.send);
  library.find("ncclRecv", nccl.receive);
  library.find("ncclAllReduce", nccl.all_reduce);
  nccl.version = version_text(version);
  nccl.path = library.path();
  return nccl;
}

}  // namespace

const Nccl& nccl() {
  static const Nccl loaded = load();
  return loaded;
}

}  // namespace lockstep::cuda
