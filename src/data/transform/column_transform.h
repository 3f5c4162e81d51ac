// ColumnTransform: what transforms have in common that make one column of each column they name: the settings
// `columns` and `as`, and everything but the values themselves.
#pragma once
#include <string>
#include <vector>

#include "data/transform/settings.h"
#include "data/transform/transform.h"

namespace lockstep {

// How every such transform describes these settings.
inline constexpr TransformSetting kColumnsSetting{"columns", "one or more columns", ""};
inline constexpr TransformSetting kAsSetting{"as", "names for what is made, as many as columns",
                                             "the columns themselves are changed"};

class ColumnTransform : public Transform {
 public:
  std::string text() const override { return text_; }
  std::vector<BlockField> reads() const override;
  std::vector<std::string> makes() const override { return to_; }
  std::vector<BlockField> output(const std::vector<BlockField>& input) const override;
  void apply(const BlockPlace& place, ColumnBlock& block) const override;

 protected:
  // What a column is needed as.
  enum class Wanted : uint8_t { kNumber, kText, kTokens };
  ColumnTransform(TransformSettings& settings, int version, Wanted wanted);

  const std::vector<std::string>& from() const { return from_; }
  const std::vector<std::string>& to() const { return to_; }
  const std::string& transform() const { return transform_; }
  void want(Wanted wanted) { wanted_ = wanted; }

  // What column i becomes; its name is set by the caller.
  virtual BlockField made(size_t i, const BlockField& from) const = 0;
  // The values of column i: `to` has a name and nothing else. Text that is made is kept in the block.
  virtual void make(size_t i, const BlockColumn& from, ColumnBlock& block, BlockColumn& to) const = 0;

 private:
  void check(const BlockField& field) const;

  std::string transform_, text_;
  std::vector<std::string> from_, to_;
  Wanted wanted_;
};

}  // namespace lockstep
