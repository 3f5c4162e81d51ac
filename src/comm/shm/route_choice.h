// Which of two routes a reduction takes that would fit in the caches: through them, or past them.
//
// Where the ranks' cores share a cache, handing data over inside it is several times faster than through
// memory; where they do not, fetching it from another core's cache is several times slower. Which is the case
// nobody says (virtual machines move), so it is measured on the calls themselves: each route in turn at
// first, and the other one again now and then. Both give the same bits.
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
