#include <algorithm>
#include <chrono>

#include "data/format/format.h"

namespace lockstep {

std::string_view Fetch::read(int64_t offset, int64_t bytes) {
  using Clock = std::chrono::steady_clock;
  if (buffers_.used_ == buffers_.buffers_.size())
    buffers_.buffers_.push_back(std::make_unique<std::string>());
  std::string& buffer = *buffers_.buffers_[buffers_.used_++];
  const auto size = static_cast<size_t>(bytes);
  if (buffer.size() < size + kPadding) buffer.resize(size + kPadding);
  const auto start = Clock::now();
  shard_.read(offset, std::span(buffer).first(size));
  nanoseconds_ += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
  bytes_ += bytes;
  std::fill_n(buffer.data() + size, kPadding, '\0');
  return {buffer.data(), size};
}

std::vector<std::string_view> Fetch::all(std::span<const GranuleSpan> spans) {
  std::vector<std::string_view> fetched;
  for (const GranuleSpan& span : spans) fetched.push_back(read(span.offset, span.bytes));
  return fetched;
}

}  // namespace lockstep
