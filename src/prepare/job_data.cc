#include "prepare/job_data.h"

#include <algorithm>

#include "base/error.h"
#include "chat/row_tokenizer.h"
#include "data/shards/shard_set.h"
#include "job/workers.h"
#include "model/hf/source.h"
#include "prepare/job_options.h"
#include "prepare/job_reading.h"
#include "prepare/table_reading.h"
#include "prepare/text_reading.h"
#include "prepare/token_masking.h"

namespace lockstep {
namespace {

using Format = DataOptions::Format;

Format format_of(const JobSpec& spec) {
  const DataFormat format = *spec.data.train.format;
  if (is_tokenized(spec)) return Format::kTokenized;
  if (std::find(kTableFormats.begin(), kTableFormats.end(), format) != kTableFormats.end())
    return Format::kTable;
  if (format == DataFormat::kText) return Format::kText;
  if (format == DataFormat::kTokens) return Format::kTokens;
  if (format == DataFormat::kImages) return Format::kImages;
  if (format == DataFormat::kTar) return Format::kTar;
  switch (spec.model.family->records) {
    case Records::kTokens: return Format::kPatternTokens;
    case Records::kText: return Format::kPatternText;
    case Records::kTable: return Format::kFraud;
    case Records::kImages: return Format::kPatternImages;
  }
  throw InternalError("no such records");
}

Shuffle shuffle_of(DataShuffle shuffle) {
  switch (shuffle) {
    case DataShuffle::kNone: return Shuffle::kNone;
    case DataShuffle::kBlock: return Shuffle::kBlock;
    case DataShuffle::kGlobal: return Shuffle::kGlobal;
  }
  return Shuffle::kBlock;
}

void check_weights(const JobSpec& spec) {
  const SourceSpec& train = spec.data.train;
  constexpr std::string_view kWeights = "data.train.weights";
  if (train.weights.empty()) {
    if (!train.weight_changes.empty())
      throw UserError("{}: data.train.weight_changes change data.train.weights, which are not given",
                      spec.where("data.train.weight_changes"));
    return;
  }
  if (train.weights.size() != train.files.size())
    throw UserError("{}: data.train.weights has {} numbers for {} entries of data.train.files; give each one",
                    spec.where(kWeights), train.weights.size(), train.files.size());
  if (std::all_of(train.weights.begin(), train.weights.end(), [](double weight) { return weight == 0; }))
    throw UserError("{}: all of data.train.weights are 0; give one of them more", spec.where(kWeights));
  int64_t before = 0;
  for (const WeightChange& change : train.weight_changes) {
    if (change.weights.size() != train.weights.size())
      throw UserError("{}: the change at sample {} has {} weights; data.train.weights has {}",
                      spec.where("data.train.weight_changes"), change.at, change.weights.size(),
                      train.weights.size());
    if (change.at <= before)
      throw UserError("{}: the change at sample {} does not come after the one before; write them in order",
                      spec.where("data.train.weight_changes"), change.at);
    before = change.at;
  }
  if (spec.data.hold_out > 0)
    throw UserError(
        "{}: data.hold_out takes the last records of all files, and with data.train.weights that would be "
        "the last entry's; write data.eval instead",
        spec.where("data.hold_out"));
}

void check_split(const JobSpec& spec) {
  if (spec.data.split.column.empty()) {
    if (spec.is_default("data.split.eval")) return;
    throw UserError("{}: data.split does not say whose records to hold out; write data.split.column",
                    spec.where("data.split.eval"));
  }
  const char* other = spec.data.hold_out > 0             ? "data.hold_out"
                      : !spec.data.eval.files.empty()    ? "data.eval"
                      : !spec.data.train.weights.empty() ? "data.train.weights"
                                                         : nullptr;
  if (other != nullptr)
    throw UserError("{}: data.split and {} cannot be used together; remove one of them",
                    spec.where("data.split.column"), other);
}

void check_cache(const JobSpec& spec) {
  if (spec.data.cache_folder.empty() || spec.data.cache == DataCache::kRows) return;
  throw UserError("{}: data.cache_folder is for data.cache: rows, which is not given",
                  spec.where("data.cache_folder"));
}

// The expressions of a job, refused by the line that they stand in.
void check_expression(const JobSpec& spec, std::string_view path, const std::string& text) {
  try {
    if (!text.empty()) Filter{text};
  } catch (const UserError& error) {
    throw UserError("{}: {}: {}", spec.where(path), path, error.what());
  }
}

std::optional<TableSubsample> subsample_of(const JobSpec& spec) {
  const SubsampleSpec& from = spec.data.subsample;
  const bool keeps = !spec.is_default("data.subsample.keep");
  for (const char* key : {"data.subsample.keep", "data.subsample.reweight", "data.subsample.by"})
    if (from.where.empty() && !spec.is_default(key))
      throw UserError("{}: data.subsample does not say which records it is for; write data.subsample.where",
                      spec.where(key));
  if (from.where.empty()) return {};
  if (!keeps)
    throw UserError("{}: data.subsample does not say how many of these records to keep; write keep: 0.1",
                    spec.where("data.subsample.where"));
  return TableSubsample{from.where, from.keep, from.reweight, from.by, static_cast<uint64_t>(spec.data.seed)};
}

// A family for text takes one column of it, those for tables take all the others.
void check_text(const JobSpec& spec) {
  const SourceSpec& train = spec.data.train;
  const ModelFamily& family = *spec.model.family;
  const auto families_for = [](Records records) {
    return fmt::format("{}", fmt::join(family_names(records), " or "));
  };
  if (family.records != Records::kText) {
    if (!train.text.empty())
      throw UserError("{}: data.train.text is for model.family {}; remove it", spec.where("data.train.text"),
                      families_for(Records::kText));
    return;
  }
  if (train.text.empty())
    throw UserError("{}: data.train.text is missing; name the column to classify, as in `text: subject`",
                    spec.where("data.train.format"));
  const ColumnsSpec& columns = train.columns;
  if (!columns.numeric.empty() || !columns.categorical.empty() || !columns.log1p.empty() || columns.fill)
    throw UserError("{}: data.train.columns is for model.family {}; the {} takes data.train.text alone",
                    spec.where("data.train.text"), families_for(Records::kTable), family.name);
  if (!spec.data.weight.empty())
    throw UserError("{}: the {}'s loss takes no weights of records; remove data.weight",
                    spec.where("data.weight"), family.name);
  if (!spec.data.subsample.where.empty() && spec.data.subsample.reweight)
    throw UserError("{}: the {}'s loss takes no weights of records; write data.subsample.reweight: false",
                    spec.where("data.subsample.where"), family.name);
}

// No format of data has a class for every token.
void check_head(const JobSpec& spec) {
  if (spec.model.source == nullptr || spec.model.source->model().head != HfHead::kTokenClass) return;
  throw UserError(
      "{}: the model has a head that classifies tokens, and no format of data has a class for each; write "
      "model.head: sequence_classification or masked_lm",
      spec.where(spec.is_default("model.head") ? "model.hf" : "model.head"));
}

std::array<double, 3> three_of(const JobSpec& spec, std::string_view key, const std::vector<double>& values) {
  if (values.size() != 3)
    throw UserError("{}: {} has {} numbers; write three, for red, green and blue", spec.where(key), key,
                    values.size());
  return {values[0], values[1], values[2]};
}

void set_images(const JobSpec& spec, DataOptions& options) {
  if (options.format != Format::kImages && options.format != Format::kTar) return;
  const ImagesSpec& images = spec.data.images;
  options.augment = {.random_crop = images.crop == ImageCrop::kRandom,
                     .area = images.area,
                     .ratio = images.ratio,
                     .flip = images.flip,
                     .brightness = images.brightness.value_or(images.jitter),
                     .contrast = images.contrast.value_or(images.jitter),
                     .saturation = images.saturation.value_or(images.jitter),
                     .hue = images.hue,
                     .grayscale = images.grayscale};
  options.resize = images.resize.value_or(spec.model.image);
  options.stretch = images.fit == ImageFit::kStretch;
  options.colors = {three_of(spec, "data.images.mean", images.mean),
                    three_of(spec, "data.images.deviation", images.deviation)};
  if (options.resize < spec.model.image)
    throw UserError("{}: data.images.resize {} is less than model.image {}; make it at least that",
                    spec.where("data.images.resize"), options.resize, spec.model.image);
  if (images.ratio[0] > images.ratio[1])
    throw UserError("{}: data.images.ratio begins with {}, which is more than {}; write the least one first",
                    spec.where("data.images.ratio"), images.ratio[0], images.ratio[1]);
}

EncodingOptions csv_options(const JobSpec& spec) {
  const SourceSpec& train = spec.data.train;
  EncodingOptions csv;
  csv.label = train.label;
  csv.numeric = train.columns.numeric;
  csv.categorical = train.columns.categorical;
  csv.ignore = train.columns.ignore;
  if (!train.columns.log1p.empty()) csv.log1p = train.columns.log1p;
  csv.fill = train.columns.fill;
  csv.task = spec.model.task;
  csv.weight = spec.data.weight;
  csv.class_weights = {spec.train.class_weights.balanced, spec.train.class_weights.of};
  csv.buckets = spec.model.rows;
  return csv;
}

OrderShape order_shape(const Data& data) {
  OrderShape shape{.records = data.train->size(), .block = data.train->block_records()};
  if (const ShardSet* files = data.train->files(); files != nullptr) shape.window = files->order_window();
  return shape;
}

// How many records of the training data a worker mixes with each other: those in the windows of its lanes.
// Workers share the microbatches of a step out evenly, and with them the lanes, where both can be
// (order/step_order.h); otherwise each reads in all of them. The windows that an epoch begins with are
// longer, by a quarter on average (order/epoch_order.cc).
int64_t mixed_by_worker(const JobSpec& spec, const Data& data) {
  if (spec.data.shuffle == DataShuffle::kNone) return 0;
  const OrderShape shape = order_shape(data);
  if (spec.data.shuffle == DataShuffle::kGlobal) return shape.records;
  const bool mixture = !spec.data.train.weights.empty();
  const int64_t workers = data_workers(spec);
  const int64_t microbatches = resolve(spec).microbatches;
  const bool even = !mixture && shape.lanes % workers == 0 && microbatches % workers == 0 &&
                    microbatches * spec.train.microbatch % shape.lanes == 0;
  const int64_t lanes = even ? shape.lanes / workers : shape.lanes;
  const int64_t windows = lanes * shape.window * shape.block * 5 / 4;
  if (!mixture) return std::min(shape.records, windows);
  int64_t mixed = 0;
  for (const int64_t records : data.parts) mixed += std::min(records, windows);
  return mixed;
}

// Where memory does not hold what is mixed, every block would be decoded again and again.
void check_memory(const JobSpec& spec, const Data& data) {
  const int64_t mixed = mixed_by_worker(spec, data);
  const int64_t needed = mixed == 0 ? 0 : data.train->memory_to_mix(mixed);
  if (needed <= ReadingMemory(spec).train) return;
  constexpr int64_t kMib = 1 << 20;
  const int64_t memory = needed + needed / (ReadingMemory::kEvalShare - 1);
  throw UserError(
      "{}: data.memory {} MiB does not hold the {} records that a worker mixes with data.shuffle {}; write "
      "data.memory: {}MiB{}",
      spec.where("data.memory"), spec.data.memory / kMib, mixed, name_of(spec.data.shuffle),
      memory / kMib + 1, data.train->could_keep_rows() ? ", or data.cache: rows" : "");
}

}  // namespace

bool evaluates_apart(const JobSpec& spec) {
  return !spec.data.eval.files.empty() || format_of(spec) == DataOptions::Format::kFraud;
}

DataOptions job_data_options(const JobSpec& spec, const HostShare& host) {
  check_head(spec);
  DataOptions options;
  options.index_folder = spec.data.index_folder;
  options.cache = spec.data.cache == DataCache::kRows;
  options.cache_folder = spec.data.cache_folder;
  options.format = format_of(spec);
  if (options.format == DataOptions::Format::kTable) {
    options.table = name_of(*spec.data.train.format);
    if (spec.data.eval.format) options.eval_table = name_of(*spec.data.eval.format);
  }
  options.train = {spec.data.train.files, spec.data.train.samples};
  options.eval = {spec.data.eval.files, spec.data.eval.samples};
  options.hold_out = spec.data.hold_out;
  options.seed = static_cast<uint64_t>(spec.data.seed);
  if (spec.model.family->records == Records::kTable) options.encoding = csv_options(spec);
  if (options.format == DataOptions::Format::kTable) {
    check_text(spec);
    options.encoding.label = spec.data.train.label;
    options.text_column = spec.data.train.text;
    if (!job_tokenizer(spec).empty() && !options.text_column.empty())
      options.text_tokenizer = RowTokenizer::open(job_tokenizer(spec));
  }
  options.seq = spec.model.seq;
  options.vocab = spec.model.vocab;
  options.classes = spec.model.classes;
  options.image = spec.model.image;
  set_text_reading(spec, options);
  options.masking = job_masking(spec);
  if (spec.model.source) options.class_names = spec.model.source->model().class_names;
  set_images(spec, options);
  options.threads = job_threads(spec, host);
  for (const TransformSpec& transform : spec.data.train.transforms)
    options.transforms.push_back(
        with_tokenizer(spec, {transform.name, {transform.settings.begin(), transform.settings.end()}}));
  options.bad = spec.data.errors.policy == DataErrors::kSkip ? BadRecords::kSkip : BadRecords::kStop;
  options.most_bad = options.bad == BadRecords::kSkip ? spec.data.errors.limit : 0;
  set_table_reading(spec, options);
  check_expression(spec, "data.filter", spec.data.filter);
  check_expression(spec, "data.subsample.where", spec.data.subsample.where);
  options.filter = spec.data.filter;
  options.subsample = subsample_of(spec);
  options.in_parts = !spec.data.train.weights.empty();
  options.split_column = spec.data.split.column;
  options.split_eval = spec.data.split.eval;
  check_weights(spec);
  check_split(spec);
  check_cache(spec);
  const ReadingMemory memory(spec);
  options.budget = memory.train;
  options.eval_budget = memory.eval;
  return options;
}

Data open_job_data(const JobSpec& spec, const HostShare& host, bool evaluates, const IndexProgress& progress,
                   const IndexProgress& cache_progress, Keeping keeping) {
  DataOptions options = job_data_options(spec, host);
  options.index_folder.writes = keeping == Keeping::kYes;
  options.progress = progress;
  options.cache_progress = cache_progress;
  options.evaluates = evaluates;
  if (!evaluates && !options.eval.files.empty()) {
    options.eval = {};
    options.hold_out = 0;
  }
  Data data = open_data(options);
  // Rows that are kept take none.
  if (!options.cache) check_memory(spec, data);
  return data;
}

ReadOrder job_read_order(const JobSpec& spec, const Data& data) {
  const OrderShape shape = order_shape(data);
  const auto seed = static_cast<uint64_t>(spec.data.seed);
  const Shuffle shuffle = shuffle_of(spec.data.shuffle);
  const std::vector<double>& weights = spec.data.train.weights;
  if (weights.empty()) return {Order(seed, shape, shuffle)};
  std::vector<MixtureShares> shares{{0, weights}};
  for (const WeightChange& change : spec.data.train.weight_changes)
    shares.push_back({change.at, change.weights});
  return {seed, data.parts, shape, shuffle, shares};
}

StepOrder job_order(const JobParts& parts) {
  return {job_read_order(parts.spec, parts.data), parts.spec.train.microbatch, parts.resolved.microbatches};
}

InputSizes input_sizes(const Data& data) { return input_sizes(data.train->columns(), data.labels); }

InputSizes input_sizes(const std::vector<Column>& columns, const std::optional<LabelEncoding>& labels) {
  InputSizes sizes;
  if (labels) {
    sizes.tables = sizes.dense = 0;
    sizes.task = labels->task;
    sizes.classes = labels->class_count();
    sizes.target = {labels->mean, labels->deviation};
  }
  for (const Column& column : columns) {
    if (column.name == "dense") sizes.dense = column.shape.numel();
    if (labels && column.name.starts_with("category.")) ++sizes.tables;
    sizes.weighted = sizes.weighted || column.name == kWeightsColumn;
    sizes.documents = sizes.documents || column.name == "documents";
    sizes.padded = sizes.padded || column.name == "keys_visible";
  }
  return sizes;
}

}  // namespace lockstep
