// BigMemory: memory for things of some 10 kB to some MB that come and go all the time and are looked at in
// any order. It lies in huge pages, so that looking at it does not wait for the tables of pages, and is used
// again without going back to the system: there it would have to be cleared each time, which takes longer
// than filling it.
//
// What is given back stays here: what an epoch's end frees, the next one's beginning takes. Regions that are
// free as a whole go once less has been in use for a long time, by the bytes that were taken meanwhile.
#pragma once
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace lockstep {

class BigMemory;

// Some bytes of it, or of the heap.
class BigBytes {
 public:
  BigBytes() = default;
  explicit BigBytes(std::unique_ptr<std::byte[]> heap) : data_(heap.release()) {}
  ~BigBytes();
  BigBytes(BigBytes&& other) noexcept
      : memory_(std::move(other.memory_)), data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  BigBytes& operator=(BigBytes&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::byte* data() const { return data_; }
  // So many bytes from where these are.
  BigBytes others(size_t bytes) const;

 private:
  friend class BigMemory;
  std::shared_ptr<BigMemory> memory_;  // null: of the heap
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

class BigMemory : public std::enable_shared_from_this<BigMemory> {
 public:
  static std::shared_ptr<BigMemory> make() { return std::shared_ptr<BigMemory>(new BigMemory); }
  ~BigMemory();
  BigMemory(const BigMemory&) = delete;
  BigMemory& operator=(const BigMemory&) = delete;

  // Not cleared, and aligned to a line of the cache. From any thread.
  BigBytes take(size_t bytes);
  // What it has from the system.
  size_t held() const;

 private:
  friend class BigBytes;
  struct Region {
    std::byte* data;
    size_t size;
    std::map<size_t, size_t> free;  // sizes by offset; no two touch
    size_t largest;                 // no gap is larger
  };

  BigMemory() = default;
  void give(std::byte* data, size_t bytes);
  Region& add_region(size_t bytes);
  void note_taken(size_t bytes);
  void drop_free_regions(size_t needed);

  mutable std::mutex mutex_;
  std::list<Region> regions_;
  size_t held_ = 0;
  size_t free_ = 0;
  // Periods end when some times what is held has been taken in them. The most that was in use in this one and
  // in that before, and what was taken.
  size_t most_ = 0, most_before_ = 0;
  size_t taken_ = 0;
};

}  // namespace lockstep
