// How a job's rows of tokens are masked.
#pragma once
#include <optional>

#include "data/tokens/masked_tokens.h"
#include "job/spec.h"

namespace lockstep {

// Nothing where the model has no masked LM head. Throws UserError for data.mask that is not for the model,
// and where nobody says which token is the mask.
std::optional<TokenMasking> job_masking(const JobSpec& spec);

}  // namespace lockstep
