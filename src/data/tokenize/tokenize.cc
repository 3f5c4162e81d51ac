#include "data/tokenize/tokenize.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "data/bytes/files.h"
#include "data/shards/formats.h"
#include "data/tokenize/document_tasks.h"

namespace lockstep {
namespace {

std::vector<BlockField> wanted_columns(const DocumentInput& input) {
  std::vector<BlockField> columns;
  if (!input.roles.empty())
    return {{input.roles, ValueType::kBytes, kVarying}, {input.contents, ValueType::kBytes, kVarying}};
  for (const std::string* name : {&input.column, &input.messages, &input.prompt, &input.response})
    if (!name->empty()) columns.push_back({*name, ValueType::kBytes, 1});
  if (columns.empty()) throw UserError("name the column of {} that holds the text", input.format);
  return columns;
}

// In text every value is what it says: no word means a missing one.
std::unique_ptr<Format> table_format(const TokenizeOptions& options) {
  FormatOptions format;
  format.columns = wanted_columns(options.input);
  format.settings = options.input.settings;
  format.bad = options.bad;
  format.missing = std::make_shared<const MissingTexts>(std::vector<std::string>{});
  return make_format(options.input.format, format);
}

void check_vocabulary(const TokenizeOptions& options, const std::vector<int32_t>& ids) {
  if (options.vocab == 0 || ids.empty()) return;
  const int32_t most = *std::max_element(ids.begin(), ids.end());
  if (most < options.vocab) return;
  throw UserError(
      "the tokenizer gives token {} ('{}'), and the model has tokens below {}: the tokenizer is not the "
      "model's; name the right one as data.tokenizer, or set model.vocab to at least {}",
      most, options.tokenizer->token_of(most).value_or(""), options.vocab, options.tokenizer->vocab_size());
}

// Where a column of messages is a list of structs: the columns of its roles and contents.
void find_lists(const std::string& file, const IndexFolder& folder, DocumentInput& input) {
  if (input.messages.empty() || input.format != "parquet") return;
  const auto shard = open_shard(file, folder);
  for (const auto& [name, reason] : make_format(input.format, {})->unread(*shard)) {
    if (!name.starts_with(input.messages + ".")) continue;
    if (name.ends_with(".role")) input.roles = name;
    if (name.ends_with(".content")) input.contents = name;
  }
  if (input.roles.empty() != input.contents.empty())
    throw UserError("{}: the structs of column '{}' have no {}; they need role and content", file,
                    input.messages, input.roles.empty() ? "role" : "content");
}

}  // namespace

std::string DocumentInput::text() const {
  std::string text = fmt::format("{} documents {} column '{}' messages '{}' prompt '{}' response '{}'",
                                 format, static_cast<int>(documents), column, messages, prompt, response);
  for (const auto& [key, value] : settings) text += fmt::format(" {} '{}'", key, value);
  return text;
}

struct DocumentSet::Parts {
  TokenizeOptions options;
  std::vector<std::unique_ptr<ByteSource>> files;  // of text
  std::unique_ptr<ShardSet> records;               // of tables; of text, for the hashes of its files

  std::unique_ptr<DocumentTasks> tasks() const {
    return options.input.is_text() ? text_tasks(options, files) : table_tasks(options, *records);
  }
};

DocumentSet::DocumentSet(const TokenizeOptions& options) : parts_(new Parts{options, {}, {}}) {
  const DocumentInput& input = options.input;
  ShardSetOptions set{.index_folder = options.index_folder,
                      .threads = options.threads,
                      .most_bad = options.most_bad,
                      .check_columns = true};
  if (!input.is_text()) {
    const std::vector<std::string> files = expand_files(input.files, make_format(input.format, {})->suffix());
    if (files.empty()) throw UserError("no {} files are given", input.format);
    find_lists(files[0], options.index_folder, parts_->options.input);
    auto format = table_format(parts_->options);
    parts_->records = std::make_unique<ShardSet>(std::move(format), files, set);
    return;
  }
  std::vector<std::unique_ptr<ByteSource>> hashed;
  for (const std::string& path : expand_files(input.files)) {
    auto file = open_shard(path, options.index_folder);
    if (file->size() < 2) continue;  // nothing that a token could be learnt from
    hashed.push_back(open_shard(path, options.index_folder));
    parts_->files.push_back(std::move(file));
  }
  if (hashed.empty()) throw UserError("the text files are empty; there is nothing to tokenize");
  FormatOptions bytes;
  bytes.settings = {{"seq", "1"}};
  parts_->records = std::make_unique<ShardSet>(make_format("text", bytes), std::move(hashed), set);
}

DocumentSet::~DocumentSet() = default;

std::string DocumentSet::fingerprint() const { return parts_->records->manifest().fingerprint(); }
int64_t DocumentSet::bytes() const { return parts_->records->manifest().bytes(); }

TokenizeReport DocumentSet::tokenize(TokenSink& sink) const {
  const TokenizeOptions& options = parts_->options;
  ThreadPool pool(options.threads);
  const auto tasks = parts_->tasks();
  TokenizeReport report;
  std::string first_problem;
  std::vector<DocumentTask> round;
  std::vector<EncodedDocuments> encoded;
  for (bool more = true; more;) {
    round.clear();
    while (std::ssize(round) < 2 * options.threads) {
      DocumentTask task = tasks->next();
      if (!task) {
        more = false;
        break;
      }
      round.push_back(std::move(task));
    }
    encoded.assign(round.size(), {});
    pool.run(std::ssize(round), [&](int64_t i) {
      // The first one in order is told, not the first in time.
      EncodedDocuments& out = encoded[static_cast<size_t>(i)];
      try {
        round[static_cast<size_t>(i)](out);
      } catch (const UserError& error) {
        out.failure = error.what();
      }
    });
    for (const EncodedDocuments& done : encoded) {
      if (!done.problems.empty() && options.bad == BadRecords::kStop) throw UserError("{}", done.problems[0]);
      if (!done.failure.empty()) throw UserError("{}", done.failure);
      if (!done.problems.empty() && first_problem.empty()) first_problem = done.problems[0];
      check_vocabulary(options, done.ids);
      size_t at = 0;
      const auto append = [&](size_t end) {
        const std::span<const int32_t> ids(done.ids);
        const std::span<const uint8_t> counts(done.counts);
        sink.append(ids.subspan(at, end - at), counts.empty() ? counts : counts.subspan(at, end - at));
        at = end;
      };
      for (const size_t end : done.ends) {
        append(end);
        sink.end_document();
      }
      if (at < done.ids.size()) append(done.ids.size());
      report.documents += std::ssize(done.ends);
      report.tokens += std::ssize(done.ids);
      report.counted +=
          done.counts.empty() ? std::ssize(done.ids) : std::count(done.counts.begin(), done.counts.end(), 1);
      report.bytes += done.bytes;
      report.cut += done.cut;
      report.dropped += done.dropped;
      report.bad += std::ssize(done.problems);
    }
    if (options.progress) options.progress(report.bytes, bytes());
  }
  const int64_t all = report.documents + report.dropped + report.bad;
  if (static_cast<double>(report.bad) > options.most_bad * static_cast<double>(all))
    throw UserError(
        "{} of {} documents cannot be used, more than the share {} that may be left out; the first: {}",
        report.bad, all, options.most_bad, first_problem);
  if (report.bad > 0)
    log_warn("{} of {} documents are left out; the first: {}", report.bad, all, first_problem);
  if (report.documents == 0)
    throw UserError("no document is left to learn from{}",
                    report.dropped > 0
                        ? fmt::format(": {} are so long that no response is left within {} tokens; "
                                      "set model.seq to more",
                                      report.dropped, options.longest)
                        : "");
  return report;
}

}  // namespace lockstep
