// The values that are chosen by name in a job file. The names stand in the order of the enumerators.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

template <typename E>
struct ChoiceNames;  // ::names, one per enumerator

template <typename E>
std::string_view name_of(E value) {
  return ChoiceNames<E>::names[static_cast<size_t>(value)];
}

#define LOCKSTEP_CHOICE_NAMES(Enum, ...)                                          \
  template <>                                                                     \
  struct ChoiceNames<Enum> {                                                      \
    static constexpr auto names = std::to_array<std::string_view>({__VA_ARGS__}); \
  };

enum class ModelFamily : uint8_t { kGpt, kEncoder, kTabular, kResnet };
LOCKSTEP_CHOICE_NAMES(ModelFamily, "gpt", "encoder", "tabular", "resnet")

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

enum class ImageCrop : uint8_t { kCenter, kRandom };
LOCKSTEP_CHOICE_NAMES(ImageCrop, "center", "random")

enum class DataErrors : uint8_t { kStop, kSkip };
LOCKSTEP_CHOICE_NAMES(DataErrors, "stop", "skip")

enum class DataCache : uint8_t { kNone, kRows };
LOCKSTEP_CHOICE_NAMES(DataCache, "none", "rows")

enum class OptimizerName : uint8_t { kSgd, kAdam, kAdamW, kLamb, kLion, kAdafactor };
LOCKSTEP_CHOICE_NAMES(OptimizerName, "sgd", "adam", "adamw", "lamb", "lion", "adafactor")

enum class LrScaling : uint8_t { kNone, kLinear, kSqrt };
LOCKSTEP_CHOICE_NAMES(LrScaling, "none", "linear", "sqrt")

enum class LrDecay : uint8_t { kConstant, kLinear, kCosine, kPolynomial, kInverseSqrt, kWsd };
LOCKSTEP_CHOICE_NAMES(LrDecay, "constant", "linear", "cosine", "polynomial", "inverse_sqrt", "wsd")

enum class Precision : uint8_t { kFp32, kBf16 };
LOCKSTEP_CHOICE_NAMES(Precision, "fp32", "bf16")

enum class NonFinitePolicy : uint8_t { kStop, kSkip, kRewind };
LOCKSTEP_CHOICE_NAMES(NonFinitePolicy, "stop", "skip", "rewind")

enum class RecomputePolicy : uint8_t { kNone, kCheap, kBlock };
LOCKSTEP_CHOICE_NAMES(RecomputePolicy, "none", "cheap", "block")

enum class Metric : uint8_t { kLoss, kPerplexity, kAccuracy, kAuc, kF1 };
LOCKSTEP_CHOICE_NAMES(Metric, "loss", "perplexity", "accuracy", "auc", "f1")

enum class ReduceVia : uint8_t { kDirect, kRing, kServer, kNone };
LOCKSTEP_CHOICE_NAMES(ReduceVia, "direct", "ring", "server", "none")

enum class ReduceOrder : uint8_t { kCanonical, kFast };
LOCKSTEP_CHOICE_NAMES(ReduceOrder, "canonical", "fast")

enum class WorkerTransport : uint8_t { kAuto, kShm, kUcx };
LOCKSTEP_CHOICE_NAMES(WorkerTransport, "auto", "shm", "ucx")

#undef LOCKSTEP_CHOICE_NAMES

}  // namespace lockstep
