#include "data/open/open.h"

#include "base/error.h"
#include "data/cache/row_cache_source.h"
#include "data/open/corpus.h"
#include "data/open/image_data.h"
#include "data/open/part_options.h"
#include "data/open/tokenized.h"
#include "data/source/wrapped_source.h"
#include "data/synthetic/fraud_shards.h"
#include "data/synthetic/fraud_writer.h"
#include "data/synthetic/patterns.h"
#include "data/table/table.h"

namespace lockstep {
namespace {

bool has_eval(const DataOptions& options) { return !options.eval.files.empty() || options.eval.samples > 0; }

std::shared_ptr<const Source> kept_rows(const DataOptions& options,
                                        const std::shared_ptr<const FileSource>& source) {
  if (!options.cache || !source) return source;
  if (!options.index_folder.writes) {
    require_rows_keep(*source);
    return source;
  }
  return keep_rows(source,
                   {.folder = options.cache_folder.empty() ? options.index_folder.path : options.cache_folder,
                    .threads = options.threads,
                    .progress = options.cache_progress});
}

void add_labels(const Table& table, Data& data) {
  if (!table.encoding) return;
  data.labels = table.encoding->encoding().labels;
  data.label_decision = table.encoding->decision();
}

Data open_table_files(const DataOptions& options) {
  TableOptions table = table_options(options);
  table.encoding.hold_out = has_eval(options) || !options.split_column.empty() ? 0 : options.hold_out;
  const Table train = open_table(table, options.train.files);
  Data data{kept_rows(options, train.source),
            kept_rows(options, train.held_out),
            train.constants(),
            train.parts,
            train.transforms,
            std::make_shared<TableReport>(train.report)};
  add_labels(train, data);
  table.in_parts = false;
  table.budget = options.eval_budget;
  if (!options.eval_table.empty()) table.format = options.eval_table;
  if (!options.eval.files.empty())
    data.eval = kept_rows(options, open_table(table, train, options.eval.files).source);
  return data;
}

Data open_tokens(const DataOptions& options) {
  CorpusOptions corpus = corpus_options(options);
  Data data{open_corpus(corpus, options.train.files), nullptr, {}};
  corpus.budget = options.eval_budget;
  if (!options.eval.files.empty()) data.eval = open_corpus(corpus, options.eval.files);
  return data;
}

// To evaluate, images are never changed at random: also those that are held out of the training files. These
// are a sample of all, because files lie class by class.
Data open_images(const DataOptions& options) {
  ImageDataOptions images = image_options(options);
  const ImageShards train = open_image_shards(images, options.train.files);
  images.augment = options.augment;
  Data data{open_image_source(images, train), nullptr, text_of_classes(train.classes)};
  images.augment = {};
  images.budget = options.eval_budget;
  const int64_t held = has_eval(options) ? 0 : held_out(data.train->size(), options.hold_out);
  if (has_eval(options)) {
    data.eval = open_image_source(images, open_image_shards(images, options.eval.files, train.classes));
  } else if (held > 0) {
    const int64_t kept = data.train->size() - held;
    const auto plain = std::make_shared<ScatteredSource>(open_image_source(images, train));
    data.eval = std::make_shared<SliceSource>(plain, kept, held);
    data.train = std::make_shared<SliceSource>(std::make_shared<ScatteredSource>(data.train), 0, kept);
  }
  return data;
}

// A card's number says nothing about its next thief, and invites learning the training set by heart.
constexpr std::string_view kCard = "card";
// What a look at the transactions finds, too, unless they are so few that merchants hardly repeat, or so many
// that times do.
constexpr int64_t kFewestKnown = 10000;
constexpr int64_t kMostKnown = 2000000;

void name_fraud_roles(EncodingOptions& csv) {
  for (const FraudColumn& column : fraud_columns()) {
    if (column.name == csv.label || column.name == "time" || column.name == kCard) continue;
    (column.field == FraudField::kText ? csv.categorical : csv.numeric).emplace_back(column.name);
  }
}

// Both parts come from one generated history, so that the held-out transactions follow the training ones in
// time.
Data open_fraud(const DataOptions& options) {
  FraudOptions fraud;
  const int64_t eval =
      has_eval(options) ? options.eval.samples : held_out(options.train.samples, options.hold_out);
  const int64_t train = has_eval(options) ? options.train.samples : options.train.samples - eval;
  if (eval < 1)
    throw UserError("generated transactions need held-out ones; set data.hold_out or data.eval.samples");
  fraud.rows = train + eval;
  fraud.eval_rows = eval;
  fraud.seed = options.seed;
  fraud.shards = 1;
  fraud.makes_eval = options.evaluates;
  TableOptions table;
  table.encoding.label = "is_fraud";
  table.encoding.buckets = options.encoding.buckets;
  table.encoding.task = options.encoding.task;
  table.encoding.class_weights = options.encoding.class_weights;
  table.encoding.ignore = {std::string(kCard)};
  if (train >= kFewestKnown && fraud.rows <= kMostKnown) name_fraud_roles(table.encoding);
  table.threads = options.threads;
  table.budget = options.budget;
  const FraudShards shards = make_fraud(fraud);
  const auto opener = [](const std::vector<FraudShard>& generated) {
    return [generated] {
      Shards open;
      for (const FraudShard& shard : generated) open.push_back(open_text(shard.name, shard.text));
      return open;
    };
  };
  const Table fitted = open_table(table, opener(shards.train));
  Data data{fitted.source, nullptr, fitted.encoding->fitted()};
  data.report = std::make_shared<TableReport>(fitted.report);
  add_labels(fitted, data);
  table.budget = options.eval_budget;
  if (options.evaluates) data.eval = open_table(table, fitted, opener(shards.eval)).source;
  return data;
}

// Generated series have no end: the held-out records are those after the training ones.
template <typename Generated, typename Options>
Data open_generated(Options generated, const DataOptions& options) {
  generated.seed = options.seed;
  generated.records = options.train.samples;
  Data data{std::make_shared<Generated>(generated), nullptr, {}};
  if (!has_eval(options)) return data;
  generated.first = generated.records;
  generated.records = options.eval.samples;
  data.eval = std::make_shared<Generated>(generated);
  return data;
}

Data open_whole(const DataOptions& options) {
  const int64_t seq = options.seq;
  switch (options.format) {
    case DataOptions::Format::kTable: return open_table_files(options);
    case DataOptions::Format::kFraud: return open_fraud(options);
    case DataOptions::Format::kText: {
      constexpr int64_t kBytes = 256;
      if (options.vocab < kBytes)
        throw UserError("the tokens of text are its bytes, and model.vocab is {}; set it to {} or more",
                        options.vocab, kBytes);
      TextOptions text{.seq = seq,
                       .index_folder = options.index_folder,
                       .budget = options.budget,
                       .progress = options.progress};
      Data data{open_text_files(text, options.train.files), nullptr, {}};
      text.budget = options.eval_budget;
      if (!options.eval.files.empty()) data.eval = open_text_files(text, options.eval.files);
      return data;
    }
    case DataOptions::Format::kTokens: return open_tokens(options);
    case DataOptions::Format::kTokenized: return open_tokenized(options);
    case DataOptions::Format::kImages:
    case DataOptions::Format::kTar: return open_images(options);
    case DataOptions::Format::kPatternTokens:
      return open_generated<PatternTokens>(PatternTokensOptions{.seq = seq, .vocab = options.vocab}, options);
    case DataOptions::Format::kPatternText:
      return open_generated<PatternText>(
          PatternTextOptions{
              .seq = seq, .vocab = options.vocab, .classes = options.classes, .padded = options.padded},
          options);
    case DataOptions::Format::kPatternImages:
      return open_generated<PatternImages>(
          PatternImagesOptions{.image = options.image, .classes = options.classes}, options);
  }
  throw InternalError("no such data format");
}

std::shared_ptr<const Source> masked(const DataOptions& options, std::shared_ptr<const Source> source,
                                     MaskedTokens::Epochs epochs) {
  if (!options.masking || !source) return source;
  return std::make_shared<MaskedTokens>(std::move(source), *options.masking, epochs);
}

Data open_parts(const DataOptions& options) {
  Data data = open_whole(options);
  const int64_t size = data.train->size();
  // Transactions are held out when they are made.
  const bool split = data.eval || options.format == DataOptions::Format::kFraud;
  const int64_t held = split ? 0 : held_out(size, options.hold_out);
  if (held == 0) return data;
  data.eval = std::make_shared<SliceSource>(data.train, size - held, held);
  data.train = std::make_shared<SliceSource>(data.train, 0, size - held);
  return data;
}

}  // namespace

Data open_data(const DataOptions& options) {
  Data data = open_parts(options);
  data.train = masked(options, data.train, MaskedTokens::Epochs::kEachItsOwn);
  data.eval = masked(options, data.eval, MaskedTokens::Epochs::kAllAlike);
  return data;
}

}  // namespace lockstep
