// SharedTasks: tasks that a thread wants done at once, and that others who come by help it with. The owner
// takes them from the front and helpers from the back, since neighbouring tasks often share what they need.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <mutex>

namespace lockstep {

class SharedTasks {
 public:
  using Task = std::function<void(size_t)>;

  // Does tasks [0, count), with whoever helps, and returns when all are done. What they throw is thrown then;
  // of several faults, that of the first task.
  void run(size_t count, const Task& task);
  // Does tasks of others until there are none left to take, those of the thread that came first before those
  // of later ones. What they throw is their owner's.
  void help();

 private:
  struct Work {
    const Task* task;
    size_t begin, end;  // of the tasks that nobody has taken
    size_t under_way = 0;
    std::exception_ptr error = nullptr;
    size_t failed = 0;  // the task that it comes from
  };
  // With the lock held, which it lets go meanwhile.
  void do_one(Work& work, size_t index, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable done_;
  std::list<Work*> works_;  // with tasks that nobody has taken
};

}  // namespace lockstep
