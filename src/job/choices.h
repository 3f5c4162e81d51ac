// The values that are chosen by name in a job file, with those of base/choices.h.
#pragma once
#include "base/choices.h"

namespace lockstep {

enum class DataFormat : uint8_t {
  kCsv,
  kJsonl,
  kTfrecord,
  kText,
  kTokens,
  kImages,
  kTar,
  kBlock,
  kParquet,
  kSynthetic
};
LOCKSTEP_CHOICE_NAMES(DataFormat, "csv", "jsonl", "tfrecord", "text", "tokens", "images", "tar", "block",
                      "parquet", "synthetic")
// Files whose records have named columns; each is a format of data/format under the same name.
inline constexpr auto kTableFormats = std::to_array(
    {DataFormat::kCsv, DataFormat::kJsonl, DataFormat::kTfrecord, DataFormat::kBlock, DataFormat::kParquet});

enum class DataShuffle : uint8_t { kNone, kBlock, kGlobal };
LOCKSTEP_CHOICE_NAMES(DataShuffle, "none", "block", "global")

enum class TokenPacking : uint8_t { kSplit, kBestFit };
LOCKSTEP_CHOICE_NAMES(TokenPacking, "split", "best_fit")

enum class DocumentUse : uint8_t { kJoined, kSeparate };
LOCKSTEP_CHOICE_NAMES(DocumentUse, "joined", "separate")

// What of an image is taken where it is not cut at random.
enum class ImageFit : uint8_t { kCrop, kStretch };
LOCKSTEP_CHOICE_NAMES(ImageFit, "crop", "stretch")

// What of a conversation is learnt.
enum class LossOn : uint8_t { kResponses, kAll };
LOCKSTEP_CHOICE_NAMES(LossOn, "responses", "all")

// What a document of a text file is, in the order of TextDocuments (data/tokenize/tokenize.h).
enum class TextUnit : uint8_t { kFile, kLine, kBlock };
LOCKSTEP_CHOICE_NAMES(TextUnit, "file", "line", "block")

enum class ImageCrop : uint8_t { kCenter, kRandom };
LOCKSTEP_CHOICE_NAMES(ImageCrop, "center", "random")

enum class DataErrors : uint8_t { kStop, kSkip };
LOCKSTEP_CHOICE_NAMES(DataErrors, "stop", "skip")

enum class DataCache : uint8_t { kNone, kRows };
LOCKSTEP_CHOICE_NAMES(DataCache, "none", "rows")

enum class OptimizerName : uint8_t { kSgd, kAdam, kAdamW, kLamb, kLion, kAdafactor };
LOCKSTEP_CHOICE_NAMES(OptimizerName, "sgd", "adam", "adamw", "lamb", "lion", "adafactor")

enum class Precision : uint8_t { kFp32, kBf16, kBf16Pure, kTf32 };
LOCKSTEP_CHOICE_NAMES(Precision, "fp32", "bf16", "bf16_pure", "tf32")
inline bool computes_in_bf16(Precision precision) {
  return precision == Precision::kBf16 || precision == Precision::kBf16Pure;
}

// What the last checkpoint of a run that has come to its end holds.
enum class SavedContent : uint8_t { kAll, kWeights, kNone };
LOCKSTEP_CHOICE_NAMES(SavedContent, "all", "weights", "none")

// Who writes checkpoints.
enum class CheckpointWriting : uint8_t { kAuto, kLeader };
LOCKSTEP_CHOICE_NAMES(CheckpointWriting, "auto", "leader")

// What the optimizer keeps beside parameters that are bf16 themselves.
enum class MomentType : uint8_t { kFp32, kBf16 };
LOCKSTEP_CHOICE_NAMES(MomentType, "fp32", "bf16")

enum class Metric : uint8_t {
  kLoss,
  kPerplexity,
  kAccuracy,
  kAuc,
  kF1,
  kPrAuc,
  kMacroF1,
  kLogLoss,
  kMae,
  kRmse,
  kR2
};
LOCKSTEP_CHOICE_NAMES(Metric, "loss", "perplexity", "accuracy", "auc", "f1", "pr_auc", "macro_f1", "log_loss",
                      "mae", "rmse", "r2")

// What a model of a Hugging Face folder begins with.
enum class ModelInit : uint8_t { kPretrained, kRandom };
LOCKSTEP_CHOICE_NAMES(ModelInit, "pretrained", "random")

// What stands on its last layer, in the order of HfHead (model/hf/family.h).
enum class ModelHead : uint8_t { kCausalLm, kMaskedLm, kSequenceClass, kTokenClass, kImageClass };
LOCKSTEP_CHOICE_NAMES(ModelHead, "causal_lm", "masked_lm", "sequence_classification", "token_classification",
                      "image_classification")

// How the matrices of LoRA begin, in the order of LoraStart (model/lora.h).
enum class LoraInit : uint8_t { kUniform, kGaussian };
LOCKSTEP_CHOICE_NAMES(LoraInit, "uniform", "gaussian")

enum class TrainMode : uint8_t { kSync, kAsync };
LOCKSTEP_CHOICE_NAMES(TrainMode, "sync", "async")

// What of a device's memory is moved to the host's.
enum class Offload : uint8_t { kNone, kState };
LOCKSTEP_CHOICE_NAMES(Offload, "none", "state")

enum class ReduceVia : uint8_t { kDirect, kServer, kNone };
LOCKSTEP_CHOICE_NAMES(ReduceVia, "direct", "server", "none")

enum class WorkerTransport : uint8_t { kAuto, kShm, kUcx, kCudaIpc, kNccl };
LOCKSTEP_CHOICE_NAMES(WorkerTransport, "auto", "shm", "ucx", "cuda_ipc", "nccl")

}  // namespace lockstep
