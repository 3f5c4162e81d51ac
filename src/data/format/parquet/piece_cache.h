// PieceCache: decoded pieces of the Parquet files of one data set, under a limit of bytes. A page holds the
// rows of many blocks; without it each of them would unpack the page again.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "base/byte_budget.h"
#include "data/format/parquet/pages.h"

namespace lockstep::parquet {

struct PieceKey {
  uint64_t file = 0;
  int64_t group = 0;
  int64_t leaf = 0;
  int64_t piece = 0;  // -1: the dictionary

  bool operator<(const PieceKey& other) const {
    return std::tie(file, group, leaf, piece) < std::tie(other.file, other.group, other.leaf, other.piece);
  }
};

class PieceCache {
 public:
  explicit PieceCache(int64_t limit) : limit_(limit) {}
  ~PieceCache();
  PieceCache(const PieceCache&) = delete;
  PieceCache& operator=(const PieceCache&) = delete;

  // Counts pieces in this budget from now on, and takes at most a quarter of it; gives the limit. Of several
  // sources that share the files the first one's budget is taken.
  int64_t use_memory(std::shared_ptr<ByteBudget> memory);

  // Null if it is not there.
  std::shared_ptr<const Piece> find(const PieceKey& key);
  // Makes it if it is not there. Threads that want the same piece wait for the first.
  std::shared_ptr<const Piece> get(const PieceKey& key, const std::function<Piece()>& make);

 private:
  struct Entry {
    std::mutex making;
    std::shared_ptr<const Piece> piece;
    std::list<PieceKey>::iterator used;
  };

  std::shared_ptr<Entry> entry(const PieceKey& key, bool add);
  void trim();
  void take(int64_t bytes);

  int64_t limit_;
  std::shared_ptr<ByteBudget> memory_ = std::make_shared<ByteBudget>(INT64_MAX);
  std::mutex mutex_;
  std::map<PieceKey, std::shared_ptr<Entry>> entries_;
  std::list<PieceKey> order_;  // the latest used first
  int64_t bytes_ = 0;
};

}  // namespace lockstep::parquet
