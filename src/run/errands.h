// Errands: lets the thread that writes a checkpoint have something done by the thread that may speak to other
// workers. Who waits for an errand when the queue goes gets an error.
#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace lockstep {

class Errands {
 public:
  // Returns when the errand is done.
  using Ask = std::function<void(const std::function<void()>& errand)>;

  Errands() = default;
  ~Errands() { close(); }
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // For the thread that asks; may outlive the queue.
  Ask asker() const;
  // On the thread that does them: waits at most so long for one. What it throws is thrown here, and to who
  // has asked.
  void answer(std::chrono::milliseconds time);
  void close();

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    const std::function<void()>* errand = nullptr;  // null: nobody asks
    std::exception_ptr error;
    bool closed = false;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace lockstep
