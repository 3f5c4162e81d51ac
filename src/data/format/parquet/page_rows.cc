#include "data/format/parquet/page_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "data/format/parquet/row_loops.h"
#include "data/format/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

// Rows whose places in a dictionary, or values, stay in the nearest cache, together with those that follow.
constexpr size_t kAtOnce = 1024;
// A dictionary of at most so many entries a row is read through before it is used: most of it is needed, and
// in its own order memory is read several times as fast as in that of the rows.
constexpr size_t kEntriesOfRow = 3;
// Of a page, one row in so many is few.
constexpr size_t kFew = 16;

// What a thread uses again and again.
struct Scratch {
  std::string page;  // as it is stored
  std::array<std::array<uint32_t, kAtOnce>, 2> picks;
  BlockColumn values;
  std::vector<uint32_t> rows;  // of a page, where they are few
  FewRows few;
};

Scratch& scratch() {
  thread_local Scratch all;
  return all;
}

// Gives the largest.
uint32_t copy_picks(const PackedRuns& runs, const char* bytes, const PageRows& rows, size_t first,
                    size_t count, uint32_t* out) {
  if (rows.only == nullptr) return runs.copy(bytes, rows.first + first, count, out);
  uint32_t most = 0;
  for (size_t i = 0; i < count; ++i) most = std::max(most, runs.copy(bytes, rows.row(first + i), 1, out + i));
  return most;
}

// copy(first, count, picks) gives some picks. Of a dictionary that is not near, the entries of picks that
// follow are asked for while some are looked up.
template <typename Copy>
void look_up_all(const EncodedDictionary& dictionary, bool near, size_t count,
                 const PageRowReader::Outs& outs, const Copy& copy) {
  auto* now = &scratch().picks[0];
  auto* next = &scratch().picks[1];
  size_t here = std::min(kAtOnce, count);
  copy(0, here, now->data());
  for (size_t done = 0; done < count;) {
    const size_t after = std::min(kAtOnce, count - done - here);
    if (after > 0) copy(done + here, after, next->data());
    for (size_t p = 0; p < outs.size(); ++p)
      pick_entries(dictionary.places[p].entries, {now->data(), here}, {next->data(), near ? 0 : after},
                   outs[p] + done);
    std::swap(now, next);
    done += here;
    here = after;
  }
}

// Places in a dictionary of which some are missing.
bool take_some(const Piece& piece, const EncodedDictionary& dictionary, const PageRows& rows,
               const PageRowReader::Outs& outs) {
  for (size_t p = 0; p < outs.size(); ++p) {
    const EncodedDictionary::Place& place = dictionary.places[p];
    for (size_t i = 0; i < rows.count; ++i) {
      const size_t row = rows.row(i);
      const bool missing = piece.missing[row] != 0;
      if (missing && !place.missing) return false;
      outs[p][i] = missing ? *place.missing : place.entries[piece.picks[row]];
    }
  }
  return true;
}

PageRows all_of(size_t count) { return {0, count, nullptr, 0}; }

}  // namespace

bool PageRowReader::take(const EncodedColumn& column, int64_t page, const PageRows& rows, const Outs& outs) {
  try {
    return is_few(column, page, rows) ? take_few(column, page, rows, outs)
                                      : take_opened(column, open(column, page, rows), rows, outs);
  } catch (const Damaged& damage) {
    if (mapped()) reading_.bytes.check_unchanged(*mapped());
    reading_.raise(column, page, damage);
  }
}

bool PageRowReader::is_few(const EncodedColumn& column, int64_t page, const PageRows& rows) const {
  return rows.only != nullptr && rows.count * kFew <= static_cast<size_t>(reading_.rows_of(column, page));
}

PageRowReader::Page PageRowReader::open(const EncodedColumn& column, int64_t number, const PageRows& rows) {
  // Most pages have a form.
  PieceUse known{reading_.key_of(column, form_of(number))};
  reading_.cache.find({&known, 1});
  if (known.piece) return open_form(column, std::move(known.piece), rows, true);
  PieceUse use{reading_.key_of(column, number), static_cast<int64_t>(rows.count)};
  reading_.cache.find({&use, 1});
  if (use.piece) {
    reading_.cache.used({&use, 1});
    return {std::move(use.piece)};
  }
  const PageSpan span = spans_of(reading_.layout, reading_.group, column.leaf, number)[0];
  const std::string_view stored = reading_.read(span.offset, static_cast<size_t>(span.bytes), scratch().page);
  const int64_t in_page = reading_.rows_of(column, number);
  Piece made;
  made.form = find_form(stored, span.offset, reading_.leaf_of(column), reading_.codec_of(column), in_page,
                        reading_.layout.limits);
  if (made.form) {
    const char* values = stored.data() + (made.form->offset - span.offset);
    auto kept = reading_.cache.get(known.key, [&] { return std::move(made); });
    const PageForm* form = &*kept->form;
    return {std::move(kept), form, values};
  }
  const auto make = [&] { return decode(column, number, stored); };
  // What is used up at once is not worth a place.
  if (static_cast<int64_t>(rows.count) >= in_page) return {std::make_shared<const Piece>(make())};
  use.piece = reading_.cache.get(use.key, make);
  reading_.cache.used({&use, 1});
  return {std::move(use.piece)};
}

PageRowReader::Page PageRowReader::open_form(const EncodedColumn& column, std::shared_ptr<const Piece> known,
                                             const PageRows& rows, bool map) const {
  const PageForm* const form = &*known->form;
  const size_t width = width_of(reading_.leaf_of(column));
  const PackedRuns::Extent extent =
      form->picks ? form->picks->extent(rows.row(0), rows.extent())
                  : PackedRuns::Extent{rows.row(0) * width, (rows.row(0) + rows.extent()) * width};
  const int64_t offset = form->offset + static_cast<int64_t>(extent.begin);
  const size_t bytes = extent.end - extent.begin;
  if (map && form->picks && rows.only == nullptr)
    if (const std::byte* at = reading_.fetch.map(offset, static_cast<int64_t>(bytes + kReadPast))) {
      const auto* const values = reinterpret_cast<const char*>(at);
      return {std::move(known), form, values - extent.begin, MappedPage({values, bytes + kReadPast})};
    }
  const char* const values = reading_.read(offset, bytes, scratch().page).data();
  return {std::move(known), form, values - extent.begin};
}

// Of the dictionary it needs to know only how long that is.
Piece PageRowReader::decode(const EncodedColumn& column, int64_t page, std::string_view stored) {
  std::shared_ptr<Dictionary> length;
  if (reading_.chunk_of(column).dictionary.bytes > 0) {
    length = std::make_shared<Dictionary>();
    length->size = dictionaries_.size(column);
  }
  return decode_piece(reading_.bytes, reading_.layout, reading_.group, column.leaf, page, {stored},
                      std::move(length));
}

bool PageRowReader::take_few(const EncodedColumn& column, int64_t number, const PageRows& rows,
                             const Outs& outs) {
  std::vector<uint32_t>& wanted = scratch().rows;
  wanted.resize(rows.count);
  for (size_t i = 0; i < rows.count; ++i) wanted[i] = static_cast<uint32_t>(rows.row(i));
  FewRows& few = scratch().few;
  const PageSpan span = reading_.chunk_of(column).pages[static_cast<size_t>(number)];
  if (read_few_rows(reading_.page_column(column), span, reading_.rows_of(column, number), wanted, few)) {
    mapped_ = span.offset;
    if (!few.by_dictionary) return take_stored(column, few.numbers.data(), all_of(rows.count), outs);
  } else {
    const Page page = open(column, number, rows);
    const auto& picks = page.form != nullptr ? page.form->picks : page.piece->packed_picks;
    if (!picks) return take_opened(column, page, rows, outs);
    few.picks.resize(rows.count);
    copy_picks(*picks, page.form != nullptr ? page.values : page.piece->packed, rows, 0, rows.count,
               few.picks.data());
  }
  if (dictionaries_.read_few(column, few))
    return take_stored(column, few.numbers.data(), all_of(rows.count), outs);
  const EncodedDictionary& dictionary = dictionaries_.encoded(column);
  if (dictionary.refused) return false;
  check_picks(few.picks, dictionary.size);
  for (size_t p = 0; p < outs.size(); ++p) pick_entries(dictionary.places[p].entries, few.picks, {}, outs[p]);
  return true;
}

bool PageRowReader::is_near(const EncodedDictionary& dictionary) {
  if (dictionary.size > kEntriesOfRow * rows_together_) return false;
  if (near_ == &dictionary) return true;
  for (const EncodedDictionary::Place& place : dictionary.places) bring_near(place.entries, dictionary.size);
  near_ = &dictionary;
  return true;
}

bool PageRowReader::take_opened(const EncodedColumn& column, Page page, const PageRows& rows,
                                const Outs& outs) {
  return page.form != nullptr ? take_form(column, std::move(page), rows, outs)
                              : take_piece(column, page, rows, outs);
}

bool PageRowReader::take_form(const EncodedColumn& column, Page page, const PageRows& rows,
                              const Outs& outs) {
  if (!page.form->picks) return take_stored(column, page.values, rows, outs);
  const EncodedDictionary& dictionary = dictionaries_.encoded(column);
  if (dictionary.refused) return false;
  if (page.mapped) {
    mapped_ = page.form->offset;
    maps_pages_ = true;
  }
  const bool near = is_near(dictionary);
  look_up_all(dictionary, near, rows.count, outs, [&](size_t first, size_t count, uint32_t* picks) {
    uint32_t most = 0;
    const auto copy = [&](std::string_view = {}) {
      most = copy_picks(*page.form->picks, page.values, rows, first, count, picks);
    };
    // Reading says what is wrong with a file.
    if (page.mapped && !page.mapped->read(copy)) page = open_form(column, page.piece, rows, false);
    if (!page.mapped) copy();
    check_pick(most, dictionary.size);
  });
  return true;
}

bool PageRowReader::take_piece(const EncodedColumn& column, const Page& page, const PageRows& rows,
                               const Outs& outs) {
  const Piece& piece = *page.piece;
  for (const int64_t bad : piece.bad_rows)
    if (bad >= static_cast<int64_t>(rows.row(0)) && bad <= static_cast<int64_t>(rows.row(rows.count - 1)))
      return false;
  if (piece.stored != nullptr) return take_stored(column, piece.stored, rows, outs);
  if (!piece.packed_picks && !piece.dictionary) return take_values(column, piece, rows, outs);
  const EncodedDictionary& dictionary = dictionaries_.encoded(column);
  if (dictionary.refused) return false;
  if (!piece.missing.empty()) return take_some(piece, dictionary, rows, outs);
  const bool near = is_near(dictionary);
  look_up_all(dictionary, near, rows.count, outs, [&](size_t first, size_t count, uint32_t* picks) {
    if (piece.packed_picks)
      copy_picks(*piece.packed_picks, piece.packed, rows, first, count, picks);
    else
      for (size_t i = 0; i < count; ++i) picks[i] = piece.picks[rows.row(first + i)];
  });
  return true;
}

bool PageRowReader::take_stored(const EncodedColumn& column, const char* stored, const PageRows& rows,
                                const Outs& outs) const {
  const auto load = [&](size_t i, auto& value) {
    std::memcpy(&value, stored + rows.row(i) * sizeof value, sizeof value);
  };
  return encode_rows(column, rows, outs, load, nullptr);
}

bool PageRowReader::take_values(const EncodedColumn& column, const Piece& piece, const PageRows& rows,
                                const Outs& outs) const {
  const auto load = [&](size_t i, auto& value) {
    value = std::get<std::vector<std::decay_t<decltype(value)>>>(piece.values)[rows.row(i)];
  };
  return encode_rows(column, rows, outs, load, piece.missing.empty() ? nullptr : piece.missing.data());
}

template <typename Load>
bool PageRowReader::encode_rows(const EncodedColumn& column, const PageRows& rows, const Outs& outs,
                                const Load& load, const uint8_t* missing) const {
  BlockColumn& some = scratch().values;
  const BlockField field = reading_.leaf_of(column).field();
  if (some.values.index() != static_cast<size_t>(field.type)) some.values = make_column(field).values;
  for (size_t done = 0; done < rows.count; done += kAtOnce) {
    const size_t here = std::min(kAtOnce, rows.count - done);
    std::visit(
        [&](auto& values) {
          values.resize(here);
          for (size_t i = 0; i < here; ++i) load(done + i, values[i]);
        },
        some.values);
    some.missing.resize(missing == nullptr ? 0 : here);
    for (size_t i = 0; i < some.missing.size(); ++i) some.missing[i] = missing[rows.row(done + i)];
    for (size_t p = 0; p < outs.size(); ++p) {
      const std::span out(outs[p] + done, here);
      if (!reading_.encoding.encode(column.places[p], some, std::as_writable_bytes(out))) return false;
    }
  }
  return true;
}

}  // namespace lockstep::parquet
