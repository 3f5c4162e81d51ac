#include "data/tokens/masked_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "base/sha256.h"
#include "data/order/permutation.h"

namespace lockstep {
namespace {

constexpr uint32_t kMaskStream = 24;
constexpr int64_t kFixedEpoch = -1;  // of records that are masked alike in every epoch

void check(const TokenMasking& masking) {
  if (!(masking.share > 0 && masking.share < 1))
    throw UserError("the share of masked tokens is {}; use more than 0 and less than 1, such as 0.15",
                    masking.share);
  if (!(masking.mask >= 0 && masking.random >= 0 && masking.mask + masking.random <= 1))
    throw UserError("of the masked tokens {} become the mask token and {} any token; together at most 1",
                    masking.mask, masking.random);
  if (masking.mask_token < 0 || masking.mask_token >= masking.vocab)
    throw UserError("the mask token is {}; the vocabulary has {} tokens", masking.mask_token, masking.vocab);
}

void require_column(const Source& source, std::string_view name) {
  for (const Column& column : source.columns())
    if (column.name == name && column.dtype == DType::kI32 && column.shape.rank() == 1) return;
  throw UserError("masked language modelling needs rows of tokens; the data has no column '{}' of them",
                  name);
}

}  // namespace

void mask_tokens(const TokenMasking& masking, int64_t epoch, int64_t record, std::span<int32_t> tokens,
                 std::span<int32_t> targets, std::span<const uint8_t> visible) {
  const uint64_t seed = mix64(masking.seed + mix64(static_cast<uint64_t>(epoch) + 1));
  const PhiloxKey key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  const auto number = static_cast<uint64_t>(record);
  const uint64_t chosen = Philox::bernoulli_threshold(masking.share);
  const uint64_t masked = Philox::bernoulli_threshold(masking.mask);
  const uint64_t changed = Philox::bernoulli_threshold(masking.mask + masking.random);
  for (size_t t = 0; t < tokens.size(); ++t) {
    targets[t] = kIgnoredLabel;
    if (!visible.empty() && visible[t] == 0) continue;
    if (std::binary_search(masking.special.begin(), masking.special.end(), tokens[t])) continue;
    const auto words = philox4x32({static_cast<uint32_t>(t), static_cast<uint32_t>(number),
                                   static_cast<uint32_t>(number >> 32), kMaskStream},
                                  key);
    if (words[0] >= chosen) continue;
    targets[t] = tokens[t];
    if (words[1] < masked)
      tokens[t] = masking.mask_token;
    else if (words[1] < changed)
      tokens[t] = static_cast<int32_t>((words[2] * static_cast<uint64_t>(masking.vocab)) >> 32);
  }
}

MaskedTokens::MaskedTokens(std::shared_ptr<const Source> source, TokenMasking masking, Epochs epochs)
    : WrappedSource(std::move(source)), masking_(std::move(masking)), epochs_(epochs) {
  check(masking_);
  require_column(wrapped(), "tokens");
  require_column(wrapped(), "targets");
  std::sort(masking_.special.begin(), masking_.special.end());
}

void MaskedTokens::fill(std::span<const int64_t> records, Batch& batch) const {
  wrapped().fill(records, batch);
  mask(records, {}, batch);
}

void MaskedTokens::fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                                  Batch& batch) const {
  wrapped().fill_in_epochs(records, epochs, batch);
  mask(records, epochs, batch);
}

void MaskedTokens::mask(std::span<const int64_t> records, std::span<const int64_t> epochs,
                        Batch& batch) const {
  const size_t tokens = batch.index_of("tokens"), targets = batch.index_of("targets");
  size_t visible = batch.columns().size();
  for (size_t i = 0; i < batch.columns().size(); ++i)
    if (batch.columns()[i].name == "keys_visible") visible = i;
  for (size_t r = 0; r < records.size(); ++r) {
    if (records[r] == kNoRecord) continue;
    const auto row = static_cast<int64_t>(r);
    const int64_t epoch = epochs_ == Epochs::kAllAlike ? kFixedEpoch : epochs.empty() ? 0 : epochs[r];
    mask_tokens(
        masking_, epoch, records[r], batch.record<int32_t>(tokens, row), batch.record<int32_t>(targets, row),
        visible < batch.columns().size() ? batch.record<uint8_t>(visible, row) : std::span<uint8_t>());
  }
}

std::string MaskedTokens::fingerprint() const {
  return sha256(fmt::format("masked 1\n{} {} {} {} {} {} {}\n{}\n{}\n", masking_.share, masking_.mask,
                            masking_.random, masking_.mask_token, masking_.vocab, masking_.seed,
                            epochs_ == Epochs::kAllAlike ? "alike" : "each", fmt::join(masking_.special, " "),
                            wrapped().fingerprint()));
}

}  // namespace lockstep
