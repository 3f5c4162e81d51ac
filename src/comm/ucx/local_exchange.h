// An Exchange between ranks of one host that have a parent in common: its children, or its threads.
//
// The texts are laid into memory that is mapped before the ranks are started. For tests and benches; a run
// has a store.
#pragma once
#include <chrono>
#include <cstddef>

#include "comm/ucx/options.h"

namespace lockstep::ucx {

class LocalExchange {
 public:
  explicit LocalExchange(int size);
  ~LocalExchange();
  LocalExchange(const LocalExchange&) = delete;
  LocalExchange& operator=(const LocalExchange&) = delete;

  // For one rank, once. The exchange fails with a CommError that names who has not come by the deadline.
  Exchange of(int rank, std::chrono::milliseconds deadline = std::chrono::seconds(60));

 private:
  struct Page;
  std::vector<std::string> gather(int rank, const std::string& own, std::chrono::milliseconds deadline);

  int size_;
  Page* pages_;
};

}  // namespace lockstep::ucx
