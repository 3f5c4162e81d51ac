// EncodeTable: the columns of a table as the inputs of a tabular model, by data/transform/table_encoding.h:
// dense f32[D] where there are numbers, category.<i> i32 for each categorical column, labels f32, or i32 for
// classes, and weights f32 where records have some. The last transform of every table, whatever format it
// came in.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/row_tokenizer.h"
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
  // Numeric columns and weights as f64, the others as bytes.
  std::vector<BlockField> reads() const override;
  std::vector<BlockField> fit_reads() const override;  // all but the categorical ones
  std::vector<BlockField> output(const std::vector<BlockField>& input) const override;
  void apply(const BlockPlace& place, ColumnBlock& block) const override;
  std::unique_ptr<TransformFit> begin_fit() const override;
  void finish_fit(const TransformFit& fit) override;
  std::string fitted() const override { return to_text(encoding_); }
  void set_fitted(std::string_view text) override { take_constants(text, encoding_); }
  std::string kept() const override;
  void set_kept(std::string_view text) override;

  const TableEncoding& encoding() const { return encoding_; }
  const EncodingOptions& options() const { return options_; }
  // Before the fit.
  void set_label_kind(LabelKind kind) { encoding_.labels.kind = kind; }
  // What the fit decided about the label, for people; a warning, or nothing.
  const std::string& decision() const { return decision_; }
  const std::string& warning() const { return warning_; }
  // The same for records that are there to evaluate on, which have no weights.
  std::shared_ptr<EncodeTable> without_weights() const;
  // As a source has them.
  std::vector<Column> columns() const;
  // The same for records whose label is not known: neither it nor a weight is read, and all labels are 0.
  std::shared_ptr<const EncodeTable> without_label() const;

 private:
  std::vector<BlockField> made_fields() const;
  // The label into the column at that place, a weight into the next one.
  void encode_label(const ColumnBlock& block, ColumnBlock& encoded, size_t place) const;

  EncodingOptions options_;
  TableEncoding encoding_;
  bool reads_label_ = true;
  std::string decision_, warning_;
};

// EncodeText: a column of text and one of classes as the inputs of an encoder: tokens i32[T], segments i32[T]
// (all 0), labels i32, keys_visible u8[T]. The last transform of a table that is read for its text.
//
// Text becomes 0, which opens every row for the pooler, and its bytes plus 1; a column that `tokenise` has
// made is taken as it is, and so is what `pad` has made. Rows are cut at T and filled up with 0.
//
// With a tokenizer, text becomes its tokens within their frame, cut so that the frame stays, and rows are
// filled up with the token that it has for that.
struct EncodeTextOptions {
  std::string column, label;
  int64_t seq = 0, vocab = 0, classes = 0;
  std::shared_ptr<const RowTokenizer> tokenizer = {};
};

class EncodeText : public Transform {
 public:
  // Throws UserError for a tokenizer that does not go with the sizes.
  explicit EncodeText(EncodeTextOptions options);

  std::string text() const override;
  std::vector<BlockField> reads() const override;
  std::vector<BlockField> output(const std::vector<BlockField>& input) const override;
  void apply(const BlockPlace& place, ColumnBlock& block) const override;

  // As a source has them.
  std::vector<Column> columns() const;
  // As EncodeTable's.
  std::shared_ptr<const EncodeText> without_label() const;
  // The class that a label names; nothing: none, and what is wrong with it.
  std::optional<int32_t> class_of(std::string_view label) const;
  std::string label_problem(std::string_view label) const;

 private:
  void encode_row(const ColumnBlock& block, size_t record, int32_t* tokens, uint8_t* visible) const;

  EncodeTextOptions options_;
  bool reads_label_ = true;
};

// Transform image_input: from the columns that image formats give (image: the encoded bytes; class: a name or
// a number) to those of a network: images f32[S,S,3] and labels i32.
//
// The part to take is chosen from the image's extent alone, the image is decoded at the smallest scale that
// still has as many pixels as are wanted, then scaled, mirrored, recoloured and normalised. What is random is
// drawn from Philox keyed by seed, epoch and record. The versions of the libraries that decode are part of
// text().
//
// Settings: size; classes (names in the order of their labels; without them the class is a number) or labels
// (how many numbers there are); those of data/pixels/augmentation.h; resize (what the short side is scaled to
// before the middle is taken); mean and deviation (three numbers each).
std::unique_ptr<Transform> make_image_input(const TransformOptions& options);

}  // namespace lockstep
