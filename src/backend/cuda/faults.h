// Faults: what kernels find wrong in their operands (an id outside its table), told to whoever waits for
// them.
//
// A kernel cannot throw: it lowers a number in memory that the host sees, and goes on with zeros. Streams
// look here after every wait.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::cuda {

class Faults {
 public:
  using Words = std::function<std::string(int64_t position)>;

  // A number of all ones, lowered by atomicMin to the first position that is wrong.
  class Place {
   public:
    Place(Faults& faults, Words words);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    // As the struct of one number that the launch functions take.
    template <typename Struct>
    Struct* as() const {
      static_assert(sizeof(Struct) == sizeof(unsigned long long));
      return reinterpret_cast<Struct*>(at_);
    }

   private:
    Faults& faults_;
    unsigned long long* at_;
  };

  ~Faults();
  // Throws UserError in the words of a place that was lowered, and clears it.
  void check();

 private:
  unsigned long long* take(Words words);
  void give_back(unsigned long long* at);

  std::mutex mutex_;
  std::vector<void*> blocks_;  // pinned
  std::vector<unsigned long long*> free_;
  std::map<unsigned long long*, Words> taken_;
};

}  // namespace lockstep::cuda
