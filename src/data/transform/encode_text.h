// EncodeText: a column of text and one of classes as the inputs of an encoder: tokens i32[T], segments i32[T]
// (all 0), labels i32, keys_visible u8[T]. The last transform of a table that is read for its text.
//
// Text becomes 0, which opens every row for the pooler, and its bytes plus 1; a column that `tokenise` has
// made is taken as it is, and so is what `pad` has made. Rows are cut at T and filled up with 0.
#pragma once
#include <string>
#include <vector>

#include "data/source/source.h"
#include "data/transform/transform.h"

namespace lockstep {

struct EncodeTextOptions {
  std::string column, label;
  int64_t seq = 0, vocab = 0, classes = 0;
};

class EncodeText : public Transform {
 public:
  explicit EncodeText(EncodeTextOptions options) : options_(std::move(options)) {}

  std::string text() const override;
  std::vector<BlockField> reads() const override;
  std::vector<BlockField> output(const std::vector<BlockField>& input) const override;
  void apply(const BlockPlace& place, ColumnBlock& block) const override;

  // As a source has them.
  std::vector<Column> columns() const;

 private:
  void encode_row(const ColumnBlock& block, size_t record, int32_t* tokens, uint8_t* visible) const;
  int32_t label_of(std::string_view text, size_t record) const;

  EncodeTextOptions options_;
};

}  // namespace lockstep
