// Which of two routes a reduction takes: its stores go through the caches, or past them.
//
// Which is faster depends on the processor, the size, and whether the ranks' cores share a cache; nobody says
// (virtual machines move), so it is measured on the calls themselves: each route in turn at first, and the
// other one again now and then. Both give the same bits. On two Zen 4 cores the caches win by 6 times at 1
// MiB and by 1.1 at 256 MiB, shared or not.
#pragma once
#include <array>
#include <cstdint>

namespace lockstep::shm {

class RouteChoice {
 public:
  // Whether the next collective of that many bytes goes through the caches.
  bool through_caches(int64_t bytes);
  // How long it took.
  void took(int64_t bytes, bool through_caches, int64_t nanoseconds);

 private:
  struct SizeClass {
    int64_t calls = 0;
    bool through = true;                         // the route in use
    std::array<double, 2> nanoseconds = {0, 0};  // past, through; 0: not known
  };
  SizeClass& size_class(int64_t bytes);
  std::array<SizeClass, 64> classes_ = {};  // by the power of two
};

}  // namespace lockstep::shm
