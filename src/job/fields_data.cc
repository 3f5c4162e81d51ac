// The data section. train and eval are described by the same keys; eval takes what it leaves out from train.
#include "job/fields.h"

namespace lockstep {
namespace {

constexpr std::string_view kTrainFormat = "data.train.format";
constexpr std::string_view kEvalFormat = "data.eval.format";

using Cases = std::vector<std::pair<std::string_view, std::string>>;

Cases for_tables(std::string_view value) {
  Cases cases;
  for (const DataFormat format : kTableFormats) cases.emplace_back(name_of(format), value);
  return cases;
}

// All files but text, in which no record can be bad.
Cases for_records(std::string_view value) {
  Cases cases = for_tables(value);
  for (const char* format : {"tokens", "images", "tar"}) cases.emplace_back(format, value);
  return cases;
}

Cases for_files() {
  Cases cases = for_tables("");
  for (const char* format : {"text", "tokens", "images", "tar"}) cases.emplace_back(format, "");
  return cases;
}

#define LOCKSTEP_SOURCE_FIELDS(part, format)                                                                \
  LOCKSTEP_FIELD(data.part.files, "paths, folders or patterns with * and ?")                                \
      .names_files()                                                                                        \
      .example("\"tx/*.csv\"")                                                                              \
      .or_else("none")                                                                                      \
      .when(format, for_files()),                                                                           \
      LOCKSTEP_FIELD(data.part.label, "the column to predict: two values, classes or numbers (model.task)") \
          .example("is_fraud")                                                                              \
          .when(format, for_tables("label")),                                                               \
      LOCKSTEP_FIELD(data.part.columns.numeric, "columns that are numbers")                                 \
          .example("[amount, hour]")                                                                        \
          .or_else("those that hold only numbers")                                                          \
          .when(format, for_tables("")),                                                                    \
      LOCKSTEP_FIELD(data.part.columns.categorical, "columns whose values are looked up in tables")         \
          .example("[merchant, country]")                                                                   \
          .or_else("the others")                                                                            \
          .when(format, for_tables("")),                                                                    \
      LOCKSTEP_FIELD(data.part.columns.ignore, "columns to leave out")                                      \
          .example("[transaction_id]")                                                                      \
          .or_else("none")                                                                                  \
          .when(format, for_tables("")),                                                                    \
      LOCKSTEP_FIELD(data.part.columns.log1p, "numeric columns to take the logarithm of, as log(1 + x)")    \
          .example("[amount]")                                                                              \
          .or_else("the skewed ones that are never negative")                                               \
          .when(format, for_tables("")),                                                                    \
      LOCKSTEP_FIELD(data.part.columns.fill, "what a missing number counts as")                             \
          .example("0")                                                                                     \
          .or_else("the column's mean")                                                                     \
          .when(format, for_tables("")),                                                                    \
      LOCKSTEP_FIELD(data.part.samples, "how many samples to generate")                                     \
          .at_least(1)                                                                                      \
          .at_most(1e12)                                                                                    \
          .when(format, {{"synthetic", "10000"}})

}  // namespace

std::vector<Field> data_fields() {
  return {
      LOCKSTEP_FIELD(data.train.format,
                     "tables (csv, jsonl, tfrecord, block, parquet), text read as bytes, corpora of tokens, "
                     "folders of images by class, "
                     "tar shards of images, or generated samples for the model's family")
          .required(),
      LOCKSTEP_SOURCE_FIELDS(train, kTrainFormat),
      LOCKSTEP_FIELD(
          data.train.text,
          "the column of text: that the encoder classifies, by the whole number or name in label, or that a "
          "language model learns to continue")
          .example("subject")
          .or_else("none")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(
          data.train.messages,
          "for language models: the column of conversations, lists of {role, content} or their JSON "
          "(docs/fine-tuning.md)")
          .example("messages")
          .or_else("none")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(data.train.prompt, "for language models: the column of what a user asks, with response")
          .example("question")
          .or_else("none")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(data.train.response, "for language models: the column of what is answered to prompt")
          .example("answer")
          .or_else("none")
          .only_with("data.train.prompt")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(data.train.weights,
                     "shares of the samples that come from each entry of files, whatever their sizes")
          .at_least(0)
          .example("[0.7, 0.3]")
          .or_else("every record once an epoch")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(data.train.weight_changes,
                     "other shares from a sample of the run on, for data.train.weights")
          .at_least(0)
          .example("[{at: 1000000, weights: [0.5, 0.5]}]")
          .or_else("none")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(data.train.transforms,
                     "what is done to columns before they are encoded, in this order; also to those of eval "
                     "(docs/transforms.md)")
          .example("[{name: clip, columns: [amount], high: 5000}]")
          .or_else("none")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(data.eval.format,
                     "as data.train.format; tables of any format go together, others must be of one format. "
                     "Label, columns and transforms are those of train")
          .or_else("no separate data; that of train if eval has other keys"),
      LOCKSTEP_SOURCE_FIELDS(eval, kEvalFormat),
      LOCKSTEP_FIELD(
          data.filter,
          "which records are used, to train and to evaluate, by their columns as they stand in the "
          "files: ==, !=, <, <=, >, >=, in, is missing, and, or, not (docs/input.md)")
          .example("\"amount > 0 and country in ('DE', 'FR')\"")
          .or_else("all records")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(
          data.weight,
          "a column of numbers of at least 0: how much a training record counts in the loss, divided "
          "by their mean; never in evaluation")
          .example("importance")
          .or_else("all alike")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(data.subsample.where,
                     "which training records only a share is kept of, written as data.filter is")
          .example("is_fraud == 0")
          .or_else("none")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(data.subsample.keep, "share of these records to keep; the same ones in every epoch")
          .above(0)
          .at_most(1)
          .only_with("data.subsample.where")
          .when(kTrainFormat, for_tables("1")),
      LOCKSTEP_FIELD(data.subsample.reweight,
                     "whether a kept one counts 1 / keep times as much in the loss, so that their sum stays")
          .only_with("data.subsample.where")
          .when(kTrainFormat, for_tables("true")),
      LOCKSTEP_FIELD(data.subsample.by, "a column whose values are kept or left out with all their records")
          .example("card")
          .or_else("record by record")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(data.split.column,
                     "evaluate on some of the entities that this column names, with all their records, and "
                     "train on the others")
          .example("card")
          .or_else("none")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(data.split.eval, "share of these entities to evaluate on")
          .above(0)
          .below(1)
          .only_with("data.split.column")
          .when(kTrainFormat, for_tables("0.1")),
      LOCKSTEP_FIELD(data.delimiter,
                     "what separates the fields of csv: one character in quotes, or comma, semicolon, tab or "
                     "bar; auto: the one of these that a file's header has most of")
          .example("\";\"")
          .when(kTrainFormat, {{"csv", "auto"}}),
      LOCKSTEP_FIELD(data.missing_values,
                     "texts that mean a missing value, in any column; nothing at all always does")
          .example("[NA, unknown, \"-999\"]")
          .or_else("`NA`, `N/A`, `n/a`, `#N/A`, `<NA>`, `NaN`, `nan`, `null`, `NULL`, `None`, `-`, `?`")
          .when(kTrainFormat, for_tables("")),
      LOCKSTEP_FIELD(data.errors.policy,
                     "what a record that cannot be read does: end the run, or be left out and listed")
          .when(kTrainFormat, for_records("stop")),
      LOCKSTEP_FIELD(data.errors.limit, "share of the records that may be left out before the run ends")
          .at_least(0)
          .at_most(1)
          .when(kTrainFormat, for_records("0.001")),
      LOCKSTEP_FIELD(data.hold_out,
                     "share of the training samples kept back for evaluation; instead of data.eval")
          .defaults_to("0")
          .at_least(0)
          .below(1),
      LOCKSTEP_FIELD(data.shuffle,
                     "a new order in every epoch, given by data.seed; block: files are read in pieces, each "
                     "once, and the records of many pieces are mixed; global: any record may come next, for "
                     "data that fits into data.memory; true is block, false is none")
          .defaults_to("block")
          .words({{"true", "block"}, {"false", "none"}}),
      LOCKSTEP_FIELD(data.seed, "seed of the order and of generated samples").defaults_to("0").at_least(0),
      LOCKSTEP_FIELD(data.readers,
                     "threads that make batches ahead; auto: as many as the worker has processors; more help "
                     "where files come from a slow disk; changes no bit")
          .takes_auto()
          .at_least(1)
          .at_most(1024)
          .defaults_to("auto"),
      LOCKSTEP_FIELD(data.memory,
                     "what a worker's records and batches may take while they are read; changes no bit")
          .in_bytes()
          .at_least(1 << 22)
          .defaults_to("512MiB"),
      LOCKSTEP_FIELD(
          data.index_folder,
          "where that is kept which is found out of the files once (indexes, fits, selections); for "
          "data that is read-only or shared; changes no bit")
          .names_files()
          .example("/scratch/index")
          .or_else(".lockstep-index beside the data")
          .when(kTrainFormat, for_files()),
      LOCKSTEP_FIELD(
          data.cache,
          "rows: records are decoded and encoded once and kept on disk, for later epochs, runs and "
          "all workers of a host (docs/input.md); changes no bit")
          .when(kTrainFormat, for_tables("none")),
      LOCKSTEP_FIELD(data.cache_folder, "where data.cache keeps rows")
          .names_files()
          .example("/scratch/rows")
          .or_else("data.index_folder")
          .when(kTrainFormat, for_tables("")),
  };
}

#undef LOCKSTEP_SOURCE_FIELDS

}  // namespace lockstep
