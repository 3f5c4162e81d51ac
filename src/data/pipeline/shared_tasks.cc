#include "data/pipeline/shared_tasks.h"

namespace lockstep {

void SharedTasks::run(size_t count, const Task& task) {
  Work work{&task, 0, count};
  std::unique_lock lock(mutex_);
  works_.push_back(&work);
  while (work.begin < work.end) do_one(work, work.begin++, lock);
  works_.remove(&work);
  done_.wait(lock, [&] { return work.under_way == 0; });
  if (work.error) std::rethrow_exception(work.error);
}

void SharedTasks::help() {
  std::unique_lock lock(mutex_);
  for (auto at = works_.begin(); at != works_.end();) {
    Work& work = **at;
    if (work.begin == work.end) {  // its owner is at the last one
      ++at;
      continue;
    }
    do_one(work, --work.end, lock);
    at = works_.begin();  // works may have come and gone
  }
}

void SharedTasks::do_one(Work& work, size_t index, std::unique_lock<std::mutex>& lock) {
  ++work.under_way;
  lock.unlock();
  std::exception_ptr error;
  try {
    (*work.task)(index);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error && (!work.error || index < work.failed)) {
    work.error = error;
    work.failed = index;
  }
  if (--work.under_way == 0) done_.notify_all();
}

}  // namespace lockstep
