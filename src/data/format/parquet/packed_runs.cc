#include "data/format/parquet/packed_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "data/format/parquet/encoded_bytes.h"
#include "data/format/parquet/thrift.h"
#include "data/format/parquet/unpack_loops.h"

namespace lockstep::parquet {
namespace {

// None of them reaches into a second word.
uint32_t unpack_words(const char* bytes, size_t first, size_t count, int bits, uint32_t* out) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t at = first * static_cast<uint64_t>(bits);
  uint32_t most = 0;
  for (size_t i = 0; i < count; ++i, at += static_cast<uint64_t>(bits)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + (at >> 3), 8);
    out[i] = static_cast<uint32_t>(word >> (at & 7) & mask);
    most = std::max(most, out[i]);
  }
  return most;
}

bool loops_take(int bits) {
  static const bool loops = has_unpack_loops();
  return loops && bits <= kMostLoopBits;
}

uint32_t most_of(const char* bytes, size_t count, int bits) {
  const size_t groups = loops_take(bits) ? count / 8 : 0;
  uint32_t most = groups > 0 ? most_of_groups(bytes, groups, bits) : 0;
  for (size_t i = groups * 8; i < count; ++i) {
    uint32_t number = 0;
    most = std::max(most, unpack_words(bytes, i, 1, bits, &number));
  }
  return most;
}

}  // namespace

uint32_t unpack_bits(const char* bytes, size_t first, size_t count, int bits, uint32_t* out) {
  if (!loops_take(bits)) return unpack_words(bytes, first, count, bits, out);
  const size_t head = std::min(count, (8 - first % 8) % 8);
  const size_t groups = (count - head) / 8;
  const size_t tail = head + groups * 8;
  return std::max(
      {unpack_words(bytes, first, head, bits, out),
       unpack_groups(bytes + (first + head) / 8 * static_cast<size_t>(bits), groups, bits, out + head),
       unpack_words(bytes, first + tail, count - tail, bits, out + tail)});
}

PackedRuns::PackedRuns(std::string_view bytes, int bits, size_t count, size_t known)
    : bits_(bits), count_(count) {
  if (bits < 0 || bits > 32) throw Damaged(fmt::format("it has levels or indices of {} bits", bits));
  if (bytes.size() >= kRepeated) throw Damaged("it has more than 4 GiB of indices; write smaller pages");
  if (bits == 0) {
    add_run(nullptr, {0, kRepeated, 0}, count, known);
    return;
  }
  RunReader reader(bytes, bits, count);
  for (EncodedRun run; reader.next(run);) {
    const uint32_t at = run.packed == nullptr ? kRepeated : static_cast<uint32_t>(run.packed - bytes.data());
    add_run(run.packed, {static_cast<uint32_t>(run.first), at, run.value}, run.count, known);
  }
  runs_.shrink_to_fit();
}

void PackedRuns::add_run(const char* bytes, const Run& run, size_t count, size_t known) {
  if (count == 0) return;
  const bool repeated = run.at == kRepeated;
  const uint32_t most = repeated ? run.value : known == kUnchecked ? 0 : most_of(bytes, count, bits_);
  if (most >= known) throw Damaged(fmt::format("it refers to entry {} of a dictionary of {}", most, known));
  runs_.push_back(run);
}

std::vector<PackedRuns::Run>::const_iterator PackedRuns::run_of(size_t number) const {
  return std::upper_bound(runs_.begin(), runs_.end(), number,
                          [](size_t place, const Run& other) { return place < other.first; }) -
         1;
}

uint32_t PackedRuns::copy(const char* bytes, size_t first, size_t count, uint32_t* out) const {
  if (count == 0) return 0;
  uint32_t most = 0;
  const size_t end = first + count;
  for (auto run = run_of(first); first < end; ++run) {
    const size_t here = std::min(end, end_of(run)) - first;
    if (run->at == kRepeated) {
      std::fill_n(out, here, run->value);
      most = std::max(most, run->value);
    } else {
      most = std::max(most, unpack_bits(bytes + run->at, first - run->first, here, bits_, out));
    }
    out += here;
    first += here;
  }
  return most;
}

PackedRuns::Extent PackedRuns::extent(size_t first, size_t count) const {
  const auto bits = static_cast<size_t>(bits_);
  Extent found{0, 0};
  if (count == 0) return found;
  const size_t end = first + count;
  for (auto run = run_of(first); first < end; ++run) {
    const size_t here = std::min(end, end_of(run)) - first;
    if (run->at != kRepeated) {
      const size_t from = first - run->first;
      if (found.end == 0) found.begin = run->at + from * bits / 8;
      found.end = run->at + ((from + here) * bits + 7) / 8;
    }
    first += here;
  }
  return found;
}

bool is_run_of(std::string_view bytes, int bits, size_t count, uint32_t value) {
  if (bits < 1 || bits > 32) return false;
  RunReader reader(bytes, bits, count);
  for (EncodedRun run; reader.next(run);)
    if (run.packed != nullptr || run.value != value) return false;
  return true;
}

}  // namespace lockstep::parquet
