#include "prepare/token_masking.h"

#include <algorithm>

#include "base/error.h"
#include "model/hf/source.h"
#include "prepare/text_reading.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

constexpr int32_t kNoToken = -1;
constexpr const char* kKeys[] = {"data.mask.share", "data.mask.replace", "data.mask.random",
                                 "data.mask.token", "data.mask.special"};

int32_t token_of(const JobSpec& spec, const char* key, int64_t token) {
  if (token >= spec.model.vocab)
    throw UserError("{}: {} has {}; the model's tokens are below {}", spec.where(key), key, token,
                    spec.model.vocab);
  return static_cast<int32_t>(token);
}

std::optional<int32_t> mask_of(const Tokenizer& tokenizer) {
  for (const char* spelling : {"[MASK]", "<mask>"})
    if (const auto token = tokenizer.id_of(spelling); token && tokenizer.is_special(*token)) return token;
  return std::nullopt;
}

// What the job leaves to the tokenizer of its model.
void take_from_tokenizer(const JobSpec& spec, TokenMasking& masking) {
  const MaskSpec& mask = spec.data.mask;
  const bool special = spec.is_default("data.mask.special");
  const std::string path = job_tokenizer(spec);
  if ((mask.token && !special) || path.empty()) return;
  const auto tokenizer = Tokenizer::open(path);
  if (!mask.token) masking.mask_token = mask_of(*tokenizer).value_or(masking.mask_token);
  const auto known = static_cast<int32_t>(std::min(tokenizer->vocab_size(), masking.vocab));
  for (int32_t token = 0; special && token < known; ++token)
    if (tokenizer->is_special(token)) masking.special.push_back(token);
}

}  // namespace

std::optional<TokenMasking> job_masking(const JobSpec& spec) {
  const bool masked = spec.model.source != nullptr && spec.model.source->model().head == HfHead::kMaskedLm;
  if (!masked) {
    for (const char* key : kKeys)
      if (!spec.is_default(key))
        throw UserError(
            "{}: {} is for models with a masked LM head; remove it, or write model.head: masked_lm",
            spec.where(key), key);
    return std::nullopt;
  }
  const MaskSpec& mask = spec.data.mask;
  TokenMasking masking{.vocab = spec.model.vocab, .seed = static_cast<uint64_t>(spec.data.seed)};
  masking.share = mask.share.value_or(masking.share);
  masking.mask = mask.replace.value_or(masking.mask);
  masking.random = mask.random.value_or(masking.random);
  if (masking.mask + masking.random > 1)
    throw UserError("{}: data.mask.replace {} and data.mask.random {} are more than all; make them 1 or less",
                    spec.where(mask.replace ? "data.mask.replace" : "data.mask.random"), masking.mask,
                    masking.random);
  masking.mask_token = mask.token ? token_of(spec, "data.mask.token", *mask.token) : kNoToken;
  for (const int64_t token : mask.special)
    masking.special.push_back(token_of(spec, "data.mask.special", token));
  take_from_tokenizer(spec, masking);
  if (masking.mask_token == kNoToken)
    throw UserError(
        "{}: nobody says which token is the mask: no tokenizer with [MASK] or <mask> is known; write its "
        "number, "
        "as in `mask: {{token: 103}}` under data",
        spec.where("model.hf"));
  return masking;
}

}  // namespace lockstep
