// JobSpec: a job file as a value. Every member is filled: from the file, from --set, or with its default.
//
// Member names are the keys of the file; fields_*.cc lists them once with type, default, limits and meaning,
// and from that list come the parser, the JSON Schema and docs/job-file.md. What depends on several values at
// once (batch arithmetic, steps from epochs, the peak learning rate) is worked out by resolve.h.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/gradient_codec.h"
#include "job/choices.h"
#include "job/origin.h"
#include "model/family.h"

namespace lockstep {

class HfSource;

// A length of training: 200 steps, 5 % of the run, or as many steps as 10000 samples take.
struct StepSpan {
  enum class Unit : uint8_t { kSteps, kFraction, kSamples };
  Unit unit = Unit::kSteps;
  double amount = 0;

  bool operator==(const StepSpan&) const = default;
};
std::string to_string(const StepSpan& span);

struct ModelSpec : ModelSizes {
  const ModelFamily* family = nullptr;  // null where a file names the model and was not opened yet
  std::string hf;                       // a Hugging Face folder, instead of a family
  ModelInit init = ModelInit::kPretrained;
  std::optional<ModelHead> head;           // unset: that of the class which config.json names
  std::shared_ptr<const HfSource> source;  // of hf: see job/open_model.h; its family is `family`
  std::string onnx;                        // an ONNX file, instead of a family
};

struct ColumnsSpec {
  std::vector<std::string> numeric, categorical;  // both empty: by what they hold
  std::vector<std::string> ignore;
  std::vector<std::string> log1p;  // empty: the skewed ones
  std::optional<double> fill;      // for missing numbers; unset: the column's mean
};

// One entry of data.train.transforms: the keys beside `name`, each with its values.
struct TransformSpec {
  std::string name;
  std::vector<std::pair<std::string, std::vector<std::string>>> settings = {};

  bool operator==(const TransformSpec&) const = default;
};

struct ErrorsSpec {
  DataErrors policy = DataErrors::kStop;
  double limit = 0;  // share of the records that may be left out
};

struct SplitSpec {
  std::string column;
  double eval = 0;
};

// Of the records that match `where`, a share is kept.
struct SubsampleSpec {
  std::string where;
  double keep = 1;
  bool reweight = true;
  std::string by;
};

// From sample `at` on, the entries of files have these weights.
struct WeightChange {
  int64_t at = 0;
  std::vector<double> weights = {};

  bool operator==(const WeightChange&) const = default;
};

// How much the records of each label count in the loss; nothing given: all alike.
struct ClassWeightsSpec {
  bool balanced = false;                                // by how rare a label is
  std::vector<std::pair<std::string, double>> of = {};  // label, weight

  bool empty() const { return !balanced && of.empty(); }
  bool operator==(const ClassWeightsSpec&) const = default;
};

struct SourceSpec {
  std::optional<DataFormat> format;  // of eval unset: no separate data
  std::vector<std::string> files;    // paths, folders and patterns
  std::string label;
  std::string text;                        // the column that is classified, or learnt by a language model
  std::string messages, prompt, response;  // columns of conversations
  ColumnsSpec columns;
  std::vector<TransformSpec> transforms;
  std::vector<double> weights;  // of the entries of files; empty: all records alike
  std::vector<WeightChange> weight_changes;
  int64_t samples = 0;  // of synthetic data
};

// How training images are cut and changed; to evaluate, the middle is taken as it is.
struct ImagesSpec {
  ImageCrop crop = ImageCrop::kCenter;
  double area = 0;                // least share of a random crop
  std::array<double, 2> ratio{};  // its least and greatest width to height
  bool flip = false;
  double jitter = 0;  // of brightness, contrast and saturation, where they are unset
  std::optional<double> brightness, contrast, saturation;
  double hue = 0, grayscale = 0;
  ImageFit fit = ImageFit::kCrop;
  std::optional<int64_t> resize;  // unset: model.image
  std::vector<double> mean, deviation;
};

// How rows of tokens are masked, for models with a masked LM head.
struct MaskSpec {
  std::optional<double> share, replace, random;
  std::optional<int64_t> token;
  std::vector<int64_t> special;
};

struct DataSpec {
  SourceSpec train, eval;
  std::optional<TokenPacking> pack;      // unset: by what the documents are (prepare/text_reading.h)
  std::optional<DocumentUse> documents;  // likewise
  std::string tokenizer;                 // of text; empty: that of model.hf
  std::string chat_template;             // a name (chat/chat_template.h)
  LossOn loss_on = LossOn::kResponses;
  TextUnit text_documents = TextUnit::kFile;
  MaskSpec mask;
  ImagesSpec images;
  double hold_out = 0;
  std::string filter;  // which records are used; empty: all
  std::string weight;  // the column that says how much a training record counts; empty: all alike
  SubsampleSpec subsample;
  SplitSpec split;
  ErrorsSpec errors;
  std::string delimiter;                    // of csv: a character, its name, or auto
  std::vector<std::string> missing_values;  // of tables
  DataShuffle shuffle = DataShuffle::kBlock;
  int64_t seed = 0;
  std::optional<int64_t> readers;  // unset: as many as it takes
  int64_t memory = 0;              // bytes that reading may use
  std::string index_folder;        // empty: beside the data
  DataCache cache = DataCache::kNone;
  std::string cache_folder;  // empty: index_folder
};

struct OptimizerSpec {
  OptimizerName name = OptimizerName::kAdamW;
  std::array<double, 2> betas{};
  double eps = 0, weight_decay = 0, momentum = 0;
  bool nesterov = false;
};

struct LrSpec {
  double base = 0;
  std::optional<int64_t> base_batch;  // unset: global_batch
  LrScaling scaling = LrScaling::kNone;
  LrDecay decay = LrDecay::kConstant;
  StepSpan warmup;
  std::optional<StepSpan> decay_steps;
  double min = 0, power = 1;
};

struct GuardSpec {
  NonFinitePolicy non_finite = NonFinitePolicy::kStop;
  int64_t max_skips = 0;
  double spike_factor = 0;  // 0: spikes are not looked for
  int64_t spike_window = 0;
  double lr_cut = 0;
};

struct EvalSpec {
  std::optional<StepSpan> every;  // unset: once, at the end
  Metric metric = Metric::kLoss;
};

struct EarlyStopSpec {
  int64_t patience = 0;  // evaluations without progress; 0: never
  std::optional<Metric> metric;
  double min_delta = 0;
};

// The weights of another run to start from.
struct InitFromSpec {
  std::string run;                        // its folder, or one checkpoint; empty: weights are drawn
  std::vector<std::string> only, except;  // patterns of names; both empty: all
};

// Matrices of low rank that are trained beside frozen layers.
struct LoraSpec {
  std::optional<int64_t> rank;  // unset: no LoRA
  double alpha = 0, dropout = 0;
  std::vector<std::string> modules;     // of the layers that get them
  std::vector<std::string> also_train;  // patterns of parameters that are trained as a whole
  bool rslora = false;
  LoraInit init = LoraInit::kUniform;
  std::string from;  // a PEFT folder to start from
};

struct TrainSpec {
  std::optional<int64_t> steps;
  std::optional<double> epochs;
  int64_t global_batch = 0, microbatch = 0;
  OptimizerSpec optimizer;
  LrSpec lr;
  Precision precision = Precision::kFp32;
  MomentType moments = MomentType::kFp32;
  bool stochastic_rounding = false;
  double clip_norm = 0;  // 0: no clipping
  double ema = 0;        // 0: none
  GuardSpec guard;
  ClassWeightsSpec class_weights;
  int64_t seed = 0;
  EvalSpec eval;
  EarlyStopSpec early_stop;
  Recompute recompute = Recompute::kNone;
  int64_t head_chunks = 1;
  InitFromSpec init_from;
  std::vector<std::string> freeze, train_only;  // patterns of names; both empty: all are trained
  LoraSpec lora;
};

struct ReduceSpec {
  ReduceVia via = ReduceVia::kDirect;
  std::optional<int64_t> servers;  // of via server; set wherever via is server
  SumOrder order = SumOrder::kCanonical;
  std::optional<int64_t> bucket;  // bytes; unset: see train/sums/buckets.h
  GradientCodec compress = GradientCodec::kNone;
  double topk = 0;   // share of the values that are sent, of compress topk
  int64_t rank = 0;  // of compress powersgd
  StepSpan warmup;   // of both
};

// Lets a worker that is five times slower than three others hold nobody up.
inline constexpr int64_t kDefaultStaleness = 16;

struct StrategySpec {
  TrainMode mode = TrainMode::kSync;
  int64_t staleness = kDefaultStaleness, servers = 1;  // of mode async
  std::optional<int64_t> workers, threads, leaves;     // unset: auto
  int64_t zero = 0, pipeline = 1, tensor = 1;
  std::optional<int64_t> zero_group;     // unset: all workers
  std::optional<int64_t> tensor_leaves;  // unset: as many as tensor
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int64_t chunks = 2;  // stages of a worker, with PipelineSchedule::kInterleaved
  Offload offload = Offload::kNone;
  ReduceSpec reduce;
  WorkerTransport transport = WorkerTransport::kAuto;
  std::optional<int64_t> memory;  // bytes a worker may plan for; unset: what the machine has
  double deadline = 0;            // seconds
};

struct MachineSpec {
  std::string machineType, acceleratorType;
  int64_t acceleratorCount = 0;
};

struct WorkerPool {
  MachineSpec machineSpec;
  int64_t replicaCount = 0;
};

struct CheckpointSpec {
  std::optional<StepSpan> every;  // unset: at the end only
  int64_t keep = 0;
  std::string dir;  // empty: the output folder
  SavedContent final = SavedContent::kAll;
  CheckpointWriting writers = CheckpointWriting::kAuto;
};

struct JobSpec {
  std::string name;
  ModelSpec model;
  DataSpec data;
  TrainSpec train;
  StrategySpec strategy;
  DeviceKind device = DeviceKind::kAuto;
  std::vector<WorkerPool> workerPoolSpecs;
  CheckpointSpec checkpoint;
  std::string output;

  std::string file;  // the job file, as it was named
  std::map<std::string, Origin>
      origins;                     // by path, as in "train.lr.base"; pools as in "workerPoolSpecs[0]..."
  std::vector<std::string> notes;  // what was understood from other tools' keys, or has no effect

  // "job.yaml:14": where the value was written, or the job file if it was not.
  std::string where(std::string_view path) const;
  bool is_default(std::string_view path) const;
};

}  // namespace lockstep
