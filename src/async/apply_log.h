// The log of an asynchronous run: which leases were applied, in which order, and which version each had read.
//
// That is all that cannot be derived: the records, the random draws and the gradient of a lease follow from
// its number and the weights that it read, the learning rate from the number of the push, and what the guard
// decided from the losses in their order. So a run can be repeated bit by bit from this file, without any
// weights or gradients in it. Ten bytes a push:
//
//   header   "LSASYNC1", staleness u32, servers u32, identity (64 hexadecimal digits), crc32c of these
//   push n   crc32c of (the crc before it, the six bytes that follow), lease - n as i32, age u15 and skipped
//            u1; the version that was read is n - 1 - age
//
// Every checksum covers all that came before it: a tail that was torn off in the middle, or a byte that has
// changed, ends what can be read there.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"

namespace lockstep::async {

struct LogHeader {
  int64_t staleness = 1;
  int64_t servers = 1;
  std::string identity;  // of the run: 64 hexadecimal digits

  bool operator==(const LogHeader&) const = default;
};

// Push n of a run, n counted from 1: it made version n of version n - 1.
struct AppliedPush {
  int64_t lease = 0;     // from 1: the global batch of that step of the data's order
  int64_t read = 0;      // the version whose weights its gradient is of
  bool skipped = false;  // the guard left its update out

  bool operator==(const AppliedPush&) const = default;
};

inline constexpr int64_t kMostStaleness = 32767;

struct ApplyLog {
  LogHeader header;
  std::vector<AppliedPush> pushes;
  int64_t whole_bytes = 0;  // of the header and these
  int64_t tail_bytes = 0;   // behind them, which are no push: torn, or damaged
};

// UserError that begins with `path` for bytes that are no such log, or one that no run writes: a lease twice,
// or a push that is older than the bound.
ApplyLog parse_log(std::string_view bytes, std::string_view path);
// UserError where there is none.
ApplyLog read_log(const std::string& path);

// Appends to the log. What the system refuses to write (a full disk) is a UserError; nothing that was not
// written is ever applied.
class LogWriter {
 public:
  // Begins the file anew, or goes on after the first pushes of one that is there, without its other ones.
  LogWriter(std::string path, const LogHeader& header, const std::vector<AppliedPush>& kept);

  void append(const AppliedPush& push);
  // All that was appended is on the disk when it returns.
  void sync();
  int64_t pushes() const { return pushes_; }

 private:
  void write(std::string_view bytes);

  std::string path_;
  FileDescriptor descriptor_;
  int64_t pushes_ = 0;
  uint32_t check_ = 0;
};

// As the writer would have them, for tests.
std::string log_bytes(const LogHeader& header, const std::vector<AppliedPush>& pushes);

}  // namespace lockstep::async
