// What is kept of unpacked pages: those that are still wanted, dictionaries longest, and no more than others
// leave.
#include "data/parquet/piece_cache.h"

#include <gtest/gtest.h>

namespace lockstep::parquet {
namespace {

constexpr int64_t kBytes = 1 << 20;

Piece page_of(int64_t rows) {
  Piece piece;
  piece.rows = rows;
  piece.values = std::vector<uint8_t>(kBytes);
  return piece;
}

Piece dictionary_alone() {
  auto dictionary = std::make_shared<Dictionary>();
  dictionary->values = std::vector<uint8_t>(kBytes);
  Piece piece;
  piece.dictionary = std::move(dictionary);
  return piece;
}

class PieceCacheTest : public ::testing::Test {
 protected:
  static PieceKey page(int64_t number) { return {1, 0, 0, number}; }
  static PieceKey dictionary(size_t leaf) { return {1, 0, leaf, {}}; }
  bool holds(const PieceKey& key) {
    PieceUse use{.key = key};
    cache_.find({&use, 1});
    return use.piece != nullptr;
  }
  std::shared_ptr<const Piece> add(const PieceKey& key) {
    return cache_.get(key, [&] { return key.is_dictionary() ? dictionary_alone() : page_of(100); });
  }

  std::shared_ptr<ByteBudget> memory_ = std::make_shared<ByteBudget>(16 * kBytes);
  PieceCache cache_{int64_t{1} << 30};
};

TEST_F(PieceCacheTest, APageGoesWhenAllOfItsRowsAreUsed) {
  cache_.use_memory(memory_);
  PieceUse use{page(0), 60, add(page(0))};
  cache_.used({&use, 1});
  EXPECT_TRUE(holds(page(0)));
  EXPECT_GT(memory_->used(), kBytes);
  use.rows = 40;
  cache_.used({&use, 1});
  EXPECT_FALSE(holds(page(0)));
  EXPECT_EQ(memory_->used(), 0);
}

TEST_F(PieceCacheTest, PagesGoBeforeDictionariesAndTheOldestFirst) {
  cache_.use_memory(memory_);
  add(dictionary(0));
  for (int64_t p = 0; p < 12; ++p) add(page(p));
  EXPECT_TRUE(holds(page(0)));  // used again: now page 1 is the oldest
  add(page(12));
  add(page(13));
  EXPECT_TRUE(holds(dictionary(0)));
  EXPECT_TRUE(holds(page(0)));
  EXPECT_FALSE(holds(page(1)));
  EXPECT_TRUE(holds(page(13)));
}

// Pages are a little more than kBytes. Of 16, two stay free, and no room for one more page is left over.
TEST_F(PieceCacheTest, TakesWhatOthersLeaveButForAnEighth) {
  cache_.use_memory(memory_);
  for (int64_t p = 0; p < 40; ++p) add(page(p));
  EXPECT_LE(memory_->used(), 14 * kBytes);
  EXPECT_GT(memory_->used(), 14 * kBytes - kBytes - kBytes / 8);
  memory_->take(6 * kBytes);
  add(page(40));
  EXPECT_LE(memory_->used(), 14 * kBytes);
  EXPECT_GT(memory_->used(), 14 * kBytes - kBytes - kBytes / 8);
}

TEST_F(PieceCacheTest, TakesAThirdWhateverOthersHave) {
  cache_.use_memory(memory_);
  const int64_t others = 10 * kBytes;
  memory_->take(others);
  for (int64_t p = 0; p < 40; ++p) add(page(p));
  EXPECT_LE(memory_->used() - others, 16 * kBytes / 3);
  EXPECT_GT(memory_->used() - others, 16 * kBytes / 3 - kBytes - kBytes / 8);
  EXPECT_TRUE(holds(page(39)));
}

}  // namespace
}  // namespace lockstep::parquet
