#include "prepare/token_masking.h"

#include "base/error.h"
#include "model/hf/source.h"

namespace lockstep {
namespace {

constexpr const char* kKeys[] = {"data.mask.share", "data.mask.replace", "data.mask.random",
                                 "data.mask.token", "data.mask.special"};

int32_t token_of(const JobSpec& spec, const char* key, int64_t token) {
  if (token >= spec.model.vocab)
    throw UserError("{}: {} has {}; the model's tokens are below {}", spec.where(key), key, token,
                    spec.model.vocab);
  return static_cast<int32_t>(token);
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
  if (!mask.token)
    throw UserError(
        "{}: data.mask.token is missing; write the number of the mask token, as in `mask: {{token: "
        "103}}` under data",
        spec.where("model.hf"));
  masking.mask_token = token_of(spec, "data.mask.token", *mask.token);
  for (const int64_t token : mask.special)
    masking.special.push_back(token_of(spec, "data.mask.special", token));
  return masking;
}

}  // namespace lockstep
