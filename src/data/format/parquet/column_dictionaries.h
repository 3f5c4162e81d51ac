// ColumnDictionaries: the dictionaries of a row group's columns, as rows take them. One is encoded once,
// entry by entry, and kept like that. For the first few rows that need it, somebody waits: single entries are
// then read from where they lie in the file, or from a dictionary that is unpacked for these rows alone.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "data/format/parquet/encoded_dictionary.h"
#include "data/format/parquet/group_reading.h"

namespace lockstep::parquet {

class ColumnDictionaries {
 public:
  // `reading` outlives this.
  explicit ColumnDictionaries(const GroupReading& reading) : reading_(reading) {}

  // All throw Damaged. This one stays until that of another column is asked for.
  const EncodedDictionary& encoded(const EncodedColumn& column);
  size_t size(const EncodedColumn& column);
  // The entries that `few` picks, as numbers, as long as the dictionary is not kept. False: it has to be.
  bool read_few(const EncodedColumn& column, FewRows& few);

  // Where something was read from the mapped file.
  std::optional<int64_t> mapped() const { return mapped_; }

 private:
  // What is known of a dictionary that is not kept; null: nothing, or it is kept. `is_first`: nobody asked
  // before.
  std::shared_ptr<const StoredDictionary> stored(const EncodedColumn& column, bool* is_first = nullptr) const;
  const Dictionary& unpack(const EncodedColumn& column);

  const GroupReading& reading_;
  std::optional<int64_t> mapped_;
  std::shared_ptr<const Dictionary> unpacked_;  // the last one; its values may lie in memory of the thread
  size_t unpacked_leaf_ = 0;
  std::shared_ptr<const EncodedDictionary> encoded_;  // the last one
  size_t encoded_leaf_ = 0;
};

}  // namespace lockstep::parquet
