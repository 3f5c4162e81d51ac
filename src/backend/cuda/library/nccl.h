// NCCL, loaded when devices of several hosts meet.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <string>

namespace lockstep::cuda {

// Of its interface, which is the same from 2.14 on, what is used here: its header is not part of the toolkit.
using NcclResult = int;
inline constexpr NcclResult kNcclSuccess = 0, kNcclInProgress = 7;
inline constexpr int kNcclInt8 = 0, kNcclFloat32 = 7, kNcclBfloat16 = 9;
inline constexpr int kNcclSum = 0;
inline constexpr size_t kNcclIdBytes = 128;
using NcclComm = void*;

struct NcclId {
  char bytes[kNcclIdBytes];
};

// As of 2.14: newer ones take their own defaults for what came later.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

struct Nccl {
  NcclResult (*get_version)(int*);
  const char* (*error_string)(NcclResult);
  const char* (*last_error)(NcclComm);
  NcclResult (*unique_id)(NcclId*);
  NcclResult (*init)(NcclComm*, int size, NcclId, int rank, NcclConfig*);
  NcclResult (*state)(NcclComm, NcclResult*);
  NcclResult (*abort)(NcclComm);
  NcclResult (*group_start)();
  NcclResult (*group_end)();
  NcclResult (*send)(const void*, size_t count, int type, int rank, NcclComm, cudaStream_t);
  NcclResult (*receive)(void*, size_t count, int type, int rank, NcclComm, cudaStream_t);
  NcclResult (*all_reduce)(const void*, void*, size_t count, int type, int operation, NcclComm, cudaStream_t);
  std::string version;
  std::string path;
};

// MissingDevice where it cannot be loaded or is too old.
const Nccl& nccl();

}  // namespace lockstep::cuda
