// Transform: one named step from the columns that a format decodes to the columns that a model takes.
//
// It works on whole blocks and is a pure function of (settings, fitted statistics, block), so that who runs
// it, when, and with which other blocks cannot matter. What is drawn at random is keyed by (seed, epoch,
// record), never by a stream. How to add one: docs/extending-input.md.
//
// Some transforms learn constants from the training data first (a mean, a vocabulary). Every block gives its
// own TransformFit, on any thread; they are merged strictly in the order of the blocks, so the constants have
// the same bits for any number of threads. They are kept with the run as text.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/column_block.h"

namespace lockstep {

// As written in the job file: every key but `name`. A single value is a list of one.
struct TransformOptions {
  std::string name;
  std::map<std::string, std::vector<std::string>> settings = {};
};

// Which records a block holds.
struct BlockPlace {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t first = 0;  // the number of its first record in the source
};

// Thrown by apply() and by fits for a value that cannot be used: the caller says which record of which file
// it is.
class BadValue : public std::runtime_error {
 public:
  BadValue(size_t row, const std::string& problem) : std::runtime_error(problem), row_(row) {}
  size_t row() const { return row_; }  // in the block

 private:
  size_t row_;
};

// Statistics of some consecutive blocks.
class TransformFit {
 public:
  virtual ~TransformFit() = default;
  virtual void add(const ColumnBlock& block) = 0;
  // `next` is of the same class, and of the blocks that follow.
  virtual void merge(const TransformFit& next) = 0;
};

class Transform {
 public:
  virtual ~Transform() = default;

  // One line with every setting: part of the data's fingerprint.
  virtual std::string text() const = 0;
  // The columns it reads, in the types that it asks files for: kBytes or kF64. A column that one transform
  // wants as a number and another as text comes as a number, and its text is then that of the number.
  virtual std::vector<BlockField> reads() const { return {}; }
  // Those of which its fit depends.
  virtual std::vector<BlockField> fit_reads() const { return reads(); }
  // The names of the columns that it makes or changes.
  virtual std::vector<std::string> makes() const { return {}; }
  // True if what it does depends on seed and epoch; its blocks are then not kept for another epoch.
  virtual bool random() const { return false; }
  // The columns it makes of these. Throws UserError for a column that is not there or of the wrong type.
  virtual std::vector<BlockField> output(const std::vector<BlockField>& input) const = 0;
  virtual void apply(const BlockPlace& place, ColumnBlock& block) const = 0;

  // Null: there is nothing to fit.
  virtual std::unique_ptr<TransformFit> begin_fit() const { return nullptr; }
  // Takes over the statistics of all training blocks, before the first apply().
  virtual void finish_fit(const TransformFit& fit);
  // The constants as text, every bit of them, and the way back.
  virtual std::string fitted() const { return {}; }
  virtual void set_fitted(std::string_view text);
  // What is kept beside the index: the constants, and what else was seen while they were fitted that is no
  // part of them.
  virtual std::string kept() const { return fitted(); }
  virtual void set_kept(std::string_view text) { set_fitted(text); }
};

// Throws UserError that names the transforms there are, or the setting that is wrong.
std::unique_ptr<Transform> make_transform(const TransformOptions& options);

// Chain: transforms one after another, seen as columns: what they need of the files, what they leave, and
// which of them must be fitted before which.
using Transforms = std::vector<std::shared_ptr<const Transform>>;

// The columns that must be decoded, in the order in which they are first read. One that somebody wants as a
// number and somebody else as text comes as a number.
std::vector<BlockField> columns_to_decode(const Transforms& transforms);

// What the transforms have made or changed of columns that files have, as the last one leaves it. Throws
// UserError for a column that nobody has, which names the transform that reads it (`names` are theirs).
std::vector<BlockField> made_columns(const Transforms& transforms, const std::vector<std::string>& names,
                                     const std::vector<BlockField>& in_files);

// Which transforms to fit in the next pass over the data and which can be applied in it, given which have
// been fitted or have nothing to fit.
struct FitPass {
  std::vector<bool> fit, apply;
  bool any() const;
};
FitPass next_pass(const Transforms& transforms, const std::vector<bool>& ready);

}  // namespace lockstep
