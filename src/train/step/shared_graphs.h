// What the plans of one job in several layouts have in common, made once: the model in leaves, its backward
// computation, the graphs behind the passes that know nothing of the layout, the stages that these are cut
// into. A key says what a value depends on apart from the job. Threads may ask at once.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace lockstep {

class SharedGraphs {
 public:
  // The value of this key, which `make` makes if nobody has asked for it before. Lives as long as this.
  template <typename Make>
  const std::invoke_result_t<Make>& once(const std::string& key, const Make& make) {
    using Made = std::invoke_result_t<Make>;
    Entry* entry = nullptr;
    {
      const std::lock_guard lock(mutex_);
      entry = &entries_[key];
    }
    const std::lock_guard lock(entry->mutex);  // others wait for what one makes
    if (entry->value == nullptr) entry->value = std::make_shared<Made>(make());
    return *static_cast<const Made*>(entry->value.get());
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::shared_ptr<void> value;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace lockstep
