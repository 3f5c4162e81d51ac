// PageRowReader: rows of single pages, encoded. Pages that lie in the file as they are, which those of
// dictionary indices mostly do, are not kept: of them only the bytes with the rows that are wanted are read,
// where they lie if files are mapped. Few rows of a page are read from the mapped file by themselves
// (few_rows.h).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/format/parquet/column_dictionaries.h"
#include "data/format/parquet/group_reading.h"
#include "data/format/parquet/mapped_page.h"

namespace lockstep::parquet {

// Some rows of a page: neighbours, or those that a list names.
struct PageRows {
  size_t first;  // without a list
  size_t count;
  const uint32_t* only;  // counted from `base` on
  int64_t base;

  size_t row(size_t i) const {
    return only == nullptr ? first + i : static_cast<size_t>(int64_t{only[i]} - base);
  }
  size_t extent() const { return count == 0 ? 0 : row(count - 1) + 1 - row(0); }
};

class PageRowReader {
 public:
  // `reading` outlives this. About so many rows of a column, of whatever pages, are taken before another's.
  PageRowReader(const GroupReading& reading, size_t rows_together)
      : reading_(reading), rows_together_(rows_together), dictionaries_(reading) {}

  // For each of the column's places, where to put it.
  using Outs = std::vector<uint32_t*>;

  // Rows of one page of a column. False where values have to be looked at one by one. Throws UserError for a
  // damaged page.
  bool take(const EncodedColumn& column, int64_t page, const PageRows& rows, const Outs& outs);

  // Where something was read from the mapped file, which may have changed meanwhile.
  std::optional<int64_t> mapped() const { return mapped_ ? mapped_ : dictionaries_.mapped(); }
  // Whether that was a few rows only.
  bool only_few() const { return mapped() && !maps_pages_; }

 private:
  struct Page {
    std::shared_ptr<const Piece> piece;
    const PageForm* form = nullptr;         // of the piece; null: it has the values
    const char* values = nullptr;           // as the form has them
    std::optional<MappedPage> mapped = {};  // what they lie in; nothing: they were read
  };

  bool is_few(const EncodedColumn& column, int64_t page, const PageRows& rows) const;
  Page open(const EncodedColumn& column, int64_t number, const PageRows& rows);
  // Rows of a page whose form is known.
  Page open_form(const EncodedColumn& column, std::shared_ptr<const Piece> known, const PageRows& rows,
                 bool map) const;
  // A page that has no form.
  Piece decode(const EncodedColumn& column, int64_t page, std::string_view stored);
  // Without unpacking what can be read from where it lies in the file.
  bool take_few(const EncodedColumn& column, int64_t number, const PageRows& rows, const Outs& outs);
  // Whether a dictionary is in the processor's cache, to which it is brought if that is worth it.
  bool is_near(const EncodedDictionary& dictionary);
  bool take_opened(const EncodedColumn& column, Page page, const PageRows& rows, const Outs& outs);
  bool take_form(const EncodedColumn& column, Page page, const PageRows& rows, const Outs& outs);
  bool take_piece(const EncodedColumn& column, const Page& page, const PageRows& rows, const Outs& outs);
  // Numbers as they are stored.
  bool take_stored(const EncodedColumn& column, const char* stored, const PageRows& rows,
                   const Outs& outs) const;
  bool take_values(const EncodedColumn& column, const Piece& piece, const PageRows& rows,
                   const Outs& outs) const;
  // load(i, value) gives the value of the i-th row.
  template <typename Load>
  bool encode_rows(const EncodedColumn& column, const PageRows& rows, const Outs& outs, const Load& load,
                   const uint8_t* missing) const;

  const GroupReading& reading_;
  size_t rows_together_;
  ColumnDictionaries dictionaries_;
  std::optional<int64_t> mapped_;
  bool maps_pages_ = false;
  const EncodedDictionary* near_ = nullptr;  // the last one
};

}  // namespace lockstep::parquet
