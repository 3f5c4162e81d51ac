// What the plans of one job in several layouts have in common, made once: the model in leaves, its backward
// computation, the graphs behind the passes that know nothing of the layout, the stages that these are cut
// into, the plans that are alike. A key says what a value depends on apart from the job. Threads may ask at
// once.
//
// What the layouts of one mesh alone have in common may have a place of its own, to be let go with them.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace lockstep {

class SharedGraphs {
 public:
  SharedGraphs() = default;
  // For one mesh; `all`: for all of them, which outlives it.
  explicit SharedGraphs(SharedGraphs* all) : all_(all) {}
  SharedGraphs& of_all() { return all_ == nullptr ? *this : *all_; }

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
  SharedGraphs* all_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace lockstep
