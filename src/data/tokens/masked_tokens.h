// MaskedTokens: rows of tokens for masked language modelling (Devlin et al., 2018), of any source that has
// the columns tokens and targets.
//
// A share of a row's tokens is chosen, never special ones or padding. Their places in targets keep the token,
// all others are kIgnoredLabel; in tokens most of the chosen become the mask token, some any token of the
// vocabulary, and the rest stay as they are.
//
// What happens at a position is a function of (seed, epoch, record, position) and its token alone: nobody
// else's draws move it. Records to evaluate on are masked alike in every epoch, whoever asks.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/source/wrapped_source.h"

namespace lockstep {

struct TokenMasking {
  double share = 0.15;              // of the tokens that are not special
  double mask = 0.8, random = 0.1;  // of these: become the mask token, become any token
  int32_t mask_token = 0;
  int64_t vocab = 0;
  std::vector<int32_t> special = {};  // tokens that are never chosen
  uint64_t seed = 0;
};

// Masks one row. `visible` is 0 where a position holds no token; empty: all do.
void mask_tokens(const TokenMasking& masking, int64_t epoch, int64_t record, std::span<int32_t> tokens,
                 std::span<int32_t> targets, std::span<const uint8_t> visible = {});

class MaskedTokens : public WrappedSource {
 public:
  enum class Epochs : uint8_t { kEachItsOwn, kAllAlike };
  // Throws UserError for shares and tokens that cannot be, and for a source without the two columns.
  MaskedTokens(std::shared_ptr<const Source> source, TokenMasking masking, Epochs epochs);

  bool varies() const override { return epochs_ == Epochs::kEachItsOwn || wrapped().varies(); }
  void fill(std::span<const int64_t> records, Batch& batch) const override;
  void fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                      Batch& batch) const override;
  void expect(std::span<const int64_t> records, std::span<const int64_t> epochs) const override {
    wrapped().expect(records, epochs);
  }
  std::string fingerprint() const override;

 private:
  void mask(std::span<const int64_t> records, std::span<const int64_t> epochs, Batch& batch) const;

  TokenMasking masking_;
  Epochs epochs_;
};

}  // namespace lockstep
