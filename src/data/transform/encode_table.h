// EncodeTable: the columns of a table as the inputs of a tabular model, by data/transform/table_encoding.h:
// dense f32[D], category.<i> i32 for each categorical column, labels f32. The last transform of every table,
// whatever format it came in.
#pragma once
#include <string>
#include <vector>

#include "data/source/source.h"
#include "data/transform/table_encoding.h"
#include "data/transform/transform.h"

namespace lockstep {

class EncodeTable : public Transform {
 public:
  // `encoding` has the roles of the columns, and constants where it is not to be fitted.
  EncodeTable(EncodingOptions options, TableEncoding encoding)
      : options_(std::move(options)), encoding_(std::move(encoding)) {}

  std::string text() const override { return "table 1"; }
  // Numeric columns as f64, the others as bytes.
  std::vector<BlockField> reads() const override;
  std::vector<BlockField> fit_reads() const override;  // the numeric ones
  std::vector<BlockField> output(const std::vector<BlockField>& input) const override;
  void apply(const BlockPlace& place, ColumnBlock& block) const override;
  std::unique_ptr<TransformFit> begin_fit() const override;
  void finish_fit(const TransformFit& fit) override;
  std::string fitted() const override { return to_text(encoding_); }
  void set_fitted(std::string_view text) override { take_constants(text, encoding_); }

  const TableEncoding& encoding() const { return encoding_; }
  // As a source has them.
  std::vector<Column> columns() const;

 private:
  std::vector<BlockField> made_fields() const;

  EncodingOptions options_;
  TableEncoding encoding_;
};

}  // namespace lockstep
