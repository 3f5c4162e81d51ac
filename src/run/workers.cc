#include "run/workers.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/sha256.h"

namespace lockstep {
namespace {

// Shorter than half of any deadline that a job may have.
constexpr std::chrono::milliseconds kBetweenWords{200};

// What the leader broadcasts.
struct Word {
  enum Kind : int64_t { kWaitOn, kAnswer, kServe };
  int64_t kind = kWaitOn;
  int64_t value = 0;
};

Word broadcast(Group& group, Word word, const std::string& about) {
  group.broadcast(std::as_writable_bytes(std::span(&word, 1)), 0, about);
  return word;
}

}  // namespace

int64_t Workers::agree(int64_t value, const std::string& about) const {
  if (group_ == nullptr) return value;
  Word word = broadcast(*group_, {Word::kAnswer, value}, about);
  while (word.kind != Word::kAnswer) {
    if (word.kind == Word::kServe) services_.at(static_cast<size_t>(word.value))();
    word = broadcast(*group_, {}, about);
  }
  return word.value;
}

void Workers::add_up(std::span<int64_t> numbers, const std::string& about) const {
  if (group_ == nullptr) return;
  void* const all = numbers.data();
  group_->all_reduce({.type = SumType::kI64,
                      .count = static_cast<int64_t>(numbers.size()),
                      .partials = {&all, 1},
                      .order = SumOrder::kFast,
                      .label = about});
}

std::string Workers::first_word(const std::string& own, const std::string& about) const {
  if (group_ == nullptr) return own;
  std::vector<int64_t> lengths(static_cast<size_t>(group_->size()), 0);
  lengths[static_cast<size_t>(group_->rank())] = static_cast<int64_t>(own.size());
  add_up(lengths, about);
  const auto first = std::ranges::find_if(lengths, [](int64_t length) { return length > 0; });
  if (first == lengths.end()) return "";
  std::string word = own;
  word.resize(static_cast<size_t>(*first));
  group_->broadcast(std::as_writable_bytes(std::span(word)), static_cast<int>(first - lengths.begin()),
                    about);
  return word;
}

void Workers::call(Service service, const std::string& about) const {
  broadcast(*group_, {Word::kServe, static_cast<int64_t>(service)}, about);
}

void Workers::still_working(const std::string& on) {
  if (count() == 1 || !leads() || Clock::now() - last_word_ < kBetweenWords) return;
  broadcast(*group_, {}, on + " goes on");
  last_word_ = Clock::now();
}

void Workers::require_same(std::string_view what, const std::string& text) const {
  if (group_ == nullptr) return;
  Sha256 hash;
  hash.update(text);
  const std::string own = hash.finish();
  std::string leaders = own;
  group_->broadcast(std::as_writable_bytes(std::span(leaders)), 0, std::string(what));
  if (own != leaders)
    throw CommError("worker {} has another {} than worker 0; all workers must have the same program and job",
                    group_->rank(), what);
}

}  // namespace lockstep
