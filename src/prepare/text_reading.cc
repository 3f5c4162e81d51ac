#include "prepare/text_reading.h"

#include <algorithm>

#include "base/error.h"
#include "chat/chat_template.h"
#include "chat/row_tokenizer.h"
#include "model/hf/source.h"

namespace lockstep {
namespace {

bool is_table(DataFormat format) {
  return std::find(kTableFormats.begin(), kTableFormats.end(), format) != kTableFormats.end();
}

bool is_chat(const JobSpec& spec) {
  return !spec.data.train.messages.empty() || !spec.data.train.prompt.empty();
}

// What the columns of a table are for is said by one of three keys.
void check_columns(const JobSpec& spec) {
  const SourceSpec& train = spec.data.train;
  const int given =
      (train.text.empty() ? 0 : 1) + (train.messages.empty() ? 0 : 1) + (train.prompt.empty() ? 0 : 1);
  if (given > 1)
    throw UserError("{}: data.train.text, messages and prompt each say what is learnt; keep one of them",
                    spec.where(train.text.empty() ? "data.train.messages" : "data.train.text"));
  if (!train.prompt.empty() && train.response.empty())
    throw UserError("{}: data.train.prompt has no data.train.response; name the column of what is answered",
                    spec.where("data.train.prompt"));
}

void refuse_tables_keys(const JobSpec& spec) {
  const SourceSpec& train = spec.data.train;
  const auto refuse = [&](bool given, const char* key) {
    if (given)
      throw UserError("{}: {} is for tables, and the {} learns text; remove it", spec.where(key), key,
                      spec.model.family->name);
  };
  refuse(!train.transforms.empty(), "data.train.transforms");
  refuse(!train.weights.empty(), "data.train.weights");
  refuse(!spec.data.filter.empty(), "data.filter");
  refuse(!spec.data.weight.empty(), "data.weight");
  refuse(!spec.data.subsample.where.empty(), "data.subsample.where");
  refuse(!spec.data.split.column.empty(), "data.split.column");
  refuse(spec.data.cache == DataCache::kRows, "data.cache");
}

}  // namespace

std::string job_tokenizer(const JobSpec& spec) {
  if (!spec.data.tokenizer.empty()) return spec.data.tokenizer;
  // A folder without one is of a model that was trained on bytes.
  if (!spec.model.source || !has_tokenizer(spec.model.source->folder())) return "";
  return spec.model.source->folder();
}

TransformOptions with_tokenizer(const JobSpec& spec, TransformOptions transform) {
  const auto method = transform.settings.find("method");
  const bool bytes =
      method != transform.settings.end() && method->second == std::vector<std::string>{"bytes"};
  if (transform.name == "tokenise" && !bytes && !job_tokenizer(spec).empty())
    transform.settings.try_emplace("tokenizer", std::vector<std::string>{job_tokenizer(spec)});
  return transform;
}

bool is_tokenized(const JobSpec& spec) {
  if (!spec.data.train.format || spec.model.family == nullptr ||
      spec.model.family->records != Records::kTokens)
    return false;
  const DataFormat format = *spec.data.train.format;
  return is_table(format) || (format == DataFormat::kText && !job_tokenizer(spec).empty());
}

void set_text_reading(const JobSpec& spec, DataOptions& options) {
  const bool tokenized = is_tokenized(spec);
  const bool chat = tokenized && is_chat(spec);
  options.best_fit =
      spec.data.pack.value_or(chat ? TokenPacking::kBestFit : TokenPacking::kSplit) == TokenPacking::kBestFit;
  options.separate = spec.data.documents.value_or(chat ? DocumentUse::kSeparate : DocumentUse::kJoined) ==
                     DocumentUse::kSeparate;
  if (!tokenized) return;
  const SourceSpec& train = spec.data.train;
  if (job_tokenizer(spec).empty())
    throw UserError(
        "{}: text becomes tokens by a tokenizer, and the job names none; write data.tokenizer: a model's "
        "folder, a tokenizer.json or a .model file",
        spec.where("data.train.format"));
  if (is_table(*train.format)) check_columns(spec);
  refuse_tables_keys(spec);
  TokenizedOptions& text = options.tokenized;
  text.tokenizer = job_tokenizer(spec);
  text.format = name_of(*train.format);
  text.text = train.text;
  text.messages = train.messages;
  text.prompt = train.prompt;
  text.response = train.response;
  text.chat_template = spec.data.chat_template;
  text.loss_on_all = spec.data.loss_on == LossOn::kAll;
  text.text_documents = static_cast<int>(spec.data.text_documents);
  if (spec.data.eval.format) options.eval_table = name_of(*spec.data.eval.format);
  const std::vector<std::string_view> known = chat_template_names();
  if (std::find(known.begin(), known.end(), text.chat_template) == known.end()) try {
      find_chat_template(text.chat_template, "");
    } catch (const UserError& error) {
      throw UserError("{}: {}", spec.where("data.chat_template"), error.what());
    }
}

}  // namespace lockstep
