// Appending values that are looked up or loaded to the columns of a block.
#pragma once
#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "data/format/parquet/pages.h"

namespace lockstep::parquet {

// Goes through entries of a dictionary, or numbers as they are stored: what is appended to a column by it is
// written once, without being set to zero before.
template <typename T, typename Load>
class Loaded {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = const T*;
  using reference = T;

  Loaded(const Load& load, size_t at) : load_(load), at_(at) {}
  T operator*() const { return load_(at_); }
  Loaded& operator++() {
    ++at_;
    return *this;
  }
  Loaded& operator--() {
    --at_;
    return *this;
  }
  Loaded& operator+=(std::ptrdiff_t count) {
    at_ += static_cast<size_t>(count);
    return *this;
  }
  std::ptrdiff_t operator-(const Loaded& other) const { return static_cast<std::ptrdiff_t>(at_ - other.at_); }
  bool operator==(const Loaded& other) const { return at_ == other.at_; }

 private:
  Load load_;
  size_t at_;
};

template <typename T, typename Load>
void append_loaded(const Load& load, size_t count, std::vector<T>& out) {
  out.insert(out.end(), Loaded<T, Load>(load, 0), Loaded<T, Load>(load, count));
}

// Numbers as they are stored, from the first-th on.
template <typename T>
void append_stored(const char* stored, size_t first, size_t count, std::vector<T>& out) {
  const char* from = stored + first * sizeof(T);
  append_loaded(
      [from](size_t i) {
        T value;
        std::memcpy(&value, from + i * sizeof(T), sizeof(T));
        return value;
      },
      count, out);
}

// A dictionary may be empty where all rows are missing.
template <typename T>
void append_picked(const Dictionary& dictionary, std::span<const uint32_t> picks, std::vector<T>& out) {
  const auto append = [&](const auto* entries) {
    append_loaded([entries, picks = picks.data()](size_t i) { return T{entries[picks[i]]}; }, picks.size(),
                  out);
  };
  if (dictionary.size == 0) return out.resize(out.size() + picks.size());
  if constexpr (std::is_arithmetic_v<T>)
    if (dictionary.stored != nullptr) return append(reinterpret_cast<const T*>(dictionary.stored));
  if constexpr (std::is_same_v<T, int64_t>)
    if (const auto* narrow = std::get_if<std::vector<int32_t>>(&dictionary.values))
      return append(narrow->data());
  append(std::get<std::vector<T>>(dictionary.values).data());
}

}  // namespace lockstep::parquet
