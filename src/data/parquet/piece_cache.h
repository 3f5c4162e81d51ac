// PieceCache: unpacked pages and dictionaries of the Parquet files of one data set, under a limit of bytes. A
// dictionary belongs to all rows of its row group, and a page often to several blocks; without the cache each
// of these would unpack them again.
//
// A page goes once all of its rows have been used, since it is wanted again in the next epoch at the
// earliest; at the limit pages go before dictionaries, and of each kind the one not used for the longest
// time.
#pragma once
#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/byte_budget.h"
#include "data/parquet/pages.h"

namespace lockstep::parquet {

struct PieceKey {
  uint64_t file = 0;
  size_t group = 0;
  size_t leaf = 0;
  std::optional<int64_t> page =
      {};  // counted in the column chunk, 0 for all of a list; nothing: its dictionary

  bool is_dictionary() const { return !page; }
  PieceKey dictionary() const { return {file, group, leaf, {}}; }
  bool same_chunk(const PieceKey& other) const { return dictionary() == other.dictionary(); }
  auto operator<=>(const PieceKey&) const = default;
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
  // stays free. Of several sources that share the files the first one's budget is taken.
  void use_memory(std::shared_ptr<ByteBudget> memory);

  // A number for a file, to keep its pieces under.
  uint64_t add_file() { return files_++; }
  // Fills in those that are there.
  void find(std::span<PieceUse> uses);
  // Makes it if it is not there. Threads that want the same piece wait for the first.
  std::shared_ptr<const Piece> get(const PieceKey& key, const std::function<Piece()>& make);
  // These rows are done with.
  void used(std::span<const PieceUse> uses);

 private:
  struct Entry;
  using Entries = std::map<PieceKey, std::shared_ptr<Entry>>;
  using Order = std::list<Entries::iterator>;  // the longest unused first
  struct Entry {
    std::mutex making;
    std::shared_ptr<const Piece> piece;
    int64_t rows_used = 0;
    Order::iterator place = {};  // once there is a piece
  };

  int64_t room() const;
  Order& order_of(const PieceKey& key) { return key.is_dictionary() ? dictionaries_ : pages_; }
  void note_use(Entries::iterator entry);
  void trim();
  void drop(Entries::iterator entry);

  int64_t limit_;
  std::atomic<uint64_t> files_ = 0;
  std::shared_ptr<ByteBudget> memory_ = std::make_shared<ByteBudget>(INT64_MAX);
  std::mutex mutex_;
  Entries entries_;
  Order pages_, dictionaries_;
  int64_t bytes_ = 0;
};

}  // namespace lockstep::parquet
