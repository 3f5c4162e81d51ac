#include "run/workers.h"

#include <cstring>

#include "base/error.h"
#include "base/sha256.h"

namespace lockstep {

int64_t Workers::agree(int64_t value, const std::string& about) const {
  if (group_ == nullptr) return value;
  group_->broadcast(std::as_writable_bytes(std::span(&value, 1)), 0, about);
  return value;
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
