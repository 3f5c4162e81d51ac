// The hash over values: whoever makes it, however many threads share the work.
#include "train/state/state_hash.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace lockstep {
namespace {

// Three pieces of one tensor, the last of them short, and one that is much smaller than a piece.
class StateHash : public ::testing::Test {
 protected:
  StateHash() : large_(2 * kHashedElements + 5), small_(7) {
    std::iota(large_.begin(), large_.end(), uint16_t{0});
    std::iota(small_.begin(), small_.end(), 1.5f);
  }
  std::vector<StateTensor> tensors() {
    return {{"large", DType::kBF16, {static_cast<int64_t>(large_.size())}, large_.data()},
            {"a.small", DType::kF32, {7}, small_.data()}};
  }
  std::string hash(int threads) { return sha256_of(*make_cpu_backend(threads), tensors()); }

  std::vector<uint16_t> large_;
  std::vector<float> small_;
};

TEST_F(StateHash, IsOneForAnyNumberOfThreads) {
  const std::string alone = hash(1);
  EXPECT_EQ(hash(2), alone);
  EXPECT_EQ(hash(3), alone);
}

TEST_F(StateHash, SeesEveryPiece) {
  const std::string before = hash(2);
  for (const size_t at : {size_t{0}, static_cast<size_t>(kHashedElements), large_.size() - 1}) {
    ++large_[at];
    EXPECT_NE(hash(2), before) << at;
    --large_[at];
  }
  EXPECT_EQ(hash(2), before);
  std::swap(small_[0], small_[1]);
  EXPECT_NE(hash(2), before);
}

TEST_F(StateHash, OfWhatIsSplitIsThatOfTheWhole) {
  std::vector<StateTensor> split = tensors();
  for (StateTensor& tensor : split) tensor.data = nullptr;
  const std::vector<StateTensor> whole = tensors();
  const auto read = [&](const StateTensor& tensor, int64_t first, std::span<std::byte> into) {
    const StateTensor& from = tensor.name == "large" ? whole[0] : whole[1];
    std::memcpy(into.data(), static_cast<const std::byte*>(from.data) + first, into.size());
  };
  EXPECT_EQ(sha256_of(*make_cpu_backend(2), split, read), hash(2));
}

}  // namespace
}  // namespace lockstep
