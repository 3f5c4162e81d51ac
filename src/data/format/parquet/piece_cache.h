// PieceCache: unpacked pages and dictionaries of the Parquet files of one data set, under a limit of bytes. A
// dictionary belongs to all rows of its row group, and a page often to several blocks; without the cache each
// of these would unpack them again.
//
// A page goes once all of its rows have been used, since it is wanted again in the next epoch at the
// earliest; at the limit pages go before dictionaries, and of each kind the one not used for the longest
// time.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>

#include "base/big_memory.h"
#include "base/byte_budget.h"
#include "data/format/parquet/pages.h"

namespace lockstep::parquet {

struct PieceKey {
  uint64_t file = 0;
  int64_t group = 0;
  int64_t leaf = 0;
  int64_t piece = 0;      // -1: the dictionary
  uint64_t encoding = 0;  // that of rows, for which other things are kept; 0: values

  bool operator<(const PieceKey& other) const {
    return std::tie(file, group, leaf, piece, encoding) <
           std::tie(other.file, other.group, other.leaf, other.piece, other.encoding);
  }
  bool operator==(const PieceKey&) const = default;
};

// Some rows of a piece that are wanted.
struct PieceUse {
  PieceKey key;
  int64_t rows = 0;
  std::shared_ptr<const Piece> piece = {};
};

class PieceCache {
 public:
  explicit PieceCache(int64_t limit) : limit_(limit) {}
  ~PieceCache();
  PieceCache(const PieceCache&) = delete;
  PieceCache& operator=(const PieceCache&) = delete;

  // Counts pieces in this budget from now on. They take a third of it, and more as long as an eighth
  // stays free; gives that third, or the limit. Of several sources that share the files the first one's
  // budget is taken.
  int64_t use_memory(std::shared_ptr<ByteBudget> memory);

  // What large pieces lie in.
  const std::shared_ptr<BigMemory>& memory() const { return big_; }

  // Fills in those that are there.
  void find(std::span<PieceUse> uses);
  // Makes it if it is not there. Threads that want the same piece wait for the first.
  std::shared_ptr<const Piece> get(const PieceKey& key, const std::function<Piece()>& make);
  // These rows are done with.
  void used(std::span<const PieceUse> uses);

 private:
  struct Entry {
    std::mutex making;
    std::shared_ptr<const Piece> piece;
    int64_t rows_used = 0;
    std::list<PieceKey>::iterator place;
  };
  using Entries = std::map<PieceKey, std::shared_ptr<Entry>>;

  std::list<PieceKey>& order_of(const PieceKey& key) { return key.piece < 0 ? dictionaries_ : pages_; }
  int64_t room() const;
  void trim();
  void trim(std::list<PieceKey>& order);
  void drop(Entries::iterator entry);

  int64_t limit_;
  std::shared_ptr<BigMemory> big_ = BigMemory::make();
  std::shared_ptr<ByteBudget> memory_ = std::make_shared<ByteBudget>(INT64_MAX);
  std::mutex mutex_;
  Entries entries_;
  std::list<PieceKey> pages_, dictionaries_;  // the latest used first
  int64_t bytes_ = 0;
};

}  // namespace lockstep::parquet
