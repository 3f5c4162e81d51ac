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

  const int64_t limit_;
  std::mutex mutex_;
  std::map<PieceKey, std::shared_ptr<Entry>> entries_;
  std::list<PieceKey> order_;  // the latest used first
  int64_t bytes_ = 0;
};

}  // namespace lockstep::parquet
