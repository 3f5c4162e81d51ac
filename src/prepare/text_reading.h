// How a job's text is read: with which tokenizer, as which documents, and how these are packed.
#pragma once
#include "data/open/open.h"
#include "job/spec.h"

namespace lockstep {

// The folder or file that a job's text is tokenized with: data.tokenizer, or model.hf. Empty: its bytes are
// tokens.
std::string job_tokenizer(const JobSpec& spec);

// Whether the job's data are documents that a language model learns, to be tokenized first.
bool is_tokenized(const JobSpec& spec);

// A transform of the job: tokenise takes the job's tokenizer where it names none and has one.
TransformOptions with_tokenizer(const JobSpec& spec, TransformOptions transform);

// The options of such documents, and for all corpora how they are packed. Throws UserError for keys that do
// not go together.
void set_text_reading(const JobSpec& spec, DataOptions& options);

}  // namespace lockstep
