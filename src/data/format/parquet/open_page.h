// OpenPage: a page unpacked and taken apart into levels and values, before these are decoded.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "data/format/parquet/metadata.h"

namespace lockstep::parquet {

// What a file may ask for: more is refused before memory is taken.
struct Limits {
  int64_t page_bytes = int64_t{256} << 20;
  int64_t page_values = int64_t{1} << 24;
};

// The unpacked bytes of a page, and some behind them that can be read (kReadPast).
class PageBytes {
 public:
  explicit PageBytes(size_t size) { reset(size); }
  // For another page, in the same memory where there is enough of it.
  void reset(size_t size);
  std::span<char> all() { return {bytes_.get(), size_}; }
  int64_t size() const { return static_cast<int64_t>(size_); }

 private:
  size_t size_ = 0, room_ = 0;
  std::unique_ptr<char[]> bytes_;
};

struct OpenPage {
  PageHeader header;
  std::shared_ptr<PageBytes> heap = {};  // what the views point to; null: the page as it is stored
  std::string_view repetition = {};
  std::string_view definition = {};
  std::string_view values = {};
};

// A page as its first bytes tell it, whose values lie in it as they are.
struct StoredPage {
  PageHeader header;
  std::string_view definition = {};  // in its first bytes
  size_t begin = 0, end = 0;         // of the values, in the page
};

// Both throw Damaged; `page` holds the header too. It is unpacked into `heap`, where one is given.
OpenPage open_page(std::string_view page, const Leaf& leaf, Codec compression, const Limits& limits,
                   std::shared_ptr<PageBytes> heap = nullptr);
// From `head`, the first bytes of a page or all of its `page_bytes`. Nothing where values do not lie in it as
// they are (compression that found nothing to compress leaves them so), where they have a crc, which only a
// whole page can be checked by, or where the head is too short to tell.
std::optional<StoredPage> find_stored(std::string_view head, size_t page_bytes, const Leaf& leaf,
                                      Codec compression, const Limits& limits);

// Throws Damaged where it is not that of a page with so many bytes behind it, or asks for more than is read.
void check_header(const PageHeader& header, size_t body_bytes, const Limits& limits);
int bits_for(int level);
bool is_data(const PageHeader& header);
bool by_dictionary(Encoding encoding);
// Whether the levels of a page say at once that no row is missing; if not, they have to be counted.
bool is_whole(const PageHeader& header, std::string_view definition, const Leaf& leaf);

// Whether numbers are wanted as they are stored, and how many bytes these take.
bool keeps_stored(const Leaf& leaf);
size_t width_of(const Leaf& leaf);

}  // namespace lockstep::parquet
