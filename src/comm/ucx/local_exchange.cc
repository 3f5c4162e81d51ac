#include "comm/ucx/local_exchange.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/error.h"

namespace lockstep::ucx {

struct LocalExchange::Page {
  std::atomic<uint32_t> bytes_plus_one;  // 0: not there yet
  std::array<char, 4092> text;
};

LocalExchange::LocalExchange(int size) : size_(size) {
  void* const memory = mmap(nullptr, sizeof(Page) * static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw CommError("no memory to meet in: {}", std::strerror(errno));
  pages_ = static_cast<Page*>(memory);
}

LocalExchange::~LocalExchange() { munmap(pages_, sizeof(Page) * static_cast<size_t>(size_)); }

Exchange LocalExchange::of(int rank, std::chrono::milliseconds deadline) {
  return [this, rank, deadline](const std::string& own) { return gather(rank, own, deadline); };
}

std::vector<std::string> LocalExchange::gather(int rank, const std::string& own,
                                               std::chrono::milliseconds deadline) {
  Page& page = pages_[rank];
  LOCKSTEP_CHECK(own.size() <= page.text.size(), "an introduction of {} bytes", own.size());
  std::memcpy(page.text.data(), own.data(), own.size());
  page.bytes_plus_one.store(static_cast<uint32_t>(own.size()) + 1, std::memory_order_release);

  const auto end = std::chrono::steady_clock::now() + deadline;
  std::vector<std::string> all;
  for (int other = 0; other < size_; ++other) {
    const Page& theirs = pages_[other];
    uint32_t bytes = 0;
    while ((bytes = theirs.bytes_plus_one.load(std::memory_order_acquire)) == 0) {
      if (std::chrono::steady_clock::now() >= end) throw CommError("rank {} did not come", other);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    all.emplace_back(theirs.text.data(), bytes - 1);
  }
  return all;
}

}  // namespace lockstep::ucx
