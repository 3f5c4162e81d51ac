#include "use/generating_model.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/convert.h"
#include "base/error.h"
#include "job/open_model.h"
#include "model/frozen_params.h"
#include "model/hf/source.h"
#include "model/llama.h"
#include "prepare/trained_model.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kPieceElements = 1 << 18;

// Our own families are these of Hugging Face, with the same names of parameters (but for gpt2's prefix).
std::string config_of(const JobSpec& spec) {
  const ModelSpec& sizes = spec.model;
  if (sizes.family->name == "gpt")
    return Json{{"model_type", "gpt2"},     {"architectures", {"GPT2LMHeadModel"}},
                {"n_layer", sizes.layers},  {"n_embd", sizes.dim},
                {"n_head", sizes.heads},    {"n_positions", sizes.seq},
                {"vocab_size", sizes.vocab}}
        .dump();
  if (sizes.family->name == "llama")
    return Json{{"model_type", "llama"},
                {"architectures", {"LlamaForCausalLM"}},
                {"num_hidden_layers", sizes.layers},
                {"hidden_size", sizes.dim},
                {"intermediate_size", sizes.hidden.value_or(llama_hidden(sizes.dim))},
                {"num_attention_heads", sizes.heads},
                {"num_key_value_heads", sizes.kv_heads.value_or(sizes.heads)},
                {"max_position_embeddings", sizes.seq},
                {"vocab_size", sizes.vocab},
                {"rope_theta", sizes.rope_theta},
                {"rms_norm_eps", sizes.norm_epsilon},
                {"tie_word_embeddings", sizes.tied}}
        .dump();
  throw UserError("{}: a model of family {} does not write text; gpt, llama and those of model.hf do",
                  spec.file, sizes.family->name);
}

// gpt has the names of gpt2 without this; with LoRA it stands inside.
std::string without_prefix(std::string name) {
  constexpr std::string_view kPrefix = "transformer.";
  if (const size_t at = name.find(kPrefix); at != std::string::npos) name.erase(at, kPrefix.size());
  return name;
}

void require_causal(const HfModel& model, const std::string& path) {
  if (model.head != HfHead::kCausalLm)
    throw UserError("{}: its head is for {}; only causal language models write text", path,
                    name_of(model.head));
}

bool is_run(const std::string& path) {
  return fs::exists(fs::path(path) / kManifestFile) || fs::exists(fs::path(path) / "job.yaml") ||
         !fs::exists(fs::path(path) / "config.json");
}

}  // namespace

GeneratingModel GeneratingModel::open(const std::string& path, Precision precision) {
  if (std::error_code failure; !fs::is_directory(path, failure))
    throw UserError("{}: there is no such folder; name a Hugging Face folder, a run or a checkpoint", path);
  GeneratingModel model;
  if (is_run(path))
    model.open_run(path, precision);
  else
    model.open_folder(path, precision);
  return model;
}

void GeneratingModel::open_folder(const std::string& path, Precision precision) {
  const auto source = std::make_shared<HfSource>(path, HfSourceOptions{});
  require_causal(source->model(), path);
  path_ = path;
  family_ = {source, &source->model()};
  std::map<std::string, const StoredTensor*> tensors;
  int64_t bytes = 0, narrow = 0;
  for (const WeightMatch::Taken& taken : source->match().taken) {
    const TensorSpec& spec = taken.from->spec();
    tensors[spec.name] = taken.from;
    add(taken.name, spec);
    const int64_t size = spec.shape.numel() * size_of(spec.dtype);
    bytes += size;
    if (spec.dtype == DType::kBF16) narrow += size;
  }
  read_ = [source, tensors](const TensorSpec& tensor, int64_t first, std::span<std::byte> into) {
    const FileMapping mapped =
        source->files()->map(*tensors.at(tensor.name), first, static_cast<int64_t>(into.size()));
    std::memcpy(into.data(), mapped.bytes().data(), into.size());
  };
  description_ = fmt::format("{} ({})", path, family_->model_type);
  finish(precision, 2 * narrow > bytes);
}

void GeneratingModel::open_run(const std::string& path, Precision precision) {
  const auto run = std::make_shared<TrainedModel>(open_trained_run(path));
  const JobSpec& spec = run->spec();
  path_ = run->path();
  if (spec.model.source != nullptr)
    family_ = {spec.model.source, &spec.model.source->model()};
  else
    family_ = make_hf_model(HfConfig::parse(config_of(spec), run->path()));
  require_causal(*family_, path_);
  if (uses_lora(spec))
    adapted_ = [run](Model model) { return with_lora(model, lora_settings(run->spec()), false); };
  std::map<std::string, TensorSpec> stored;
  for (const TensorSpec& tensor : run->weights()) stored[tensor.name] = tensor;
  const bool renamed = spec.model.source == nullptr && spec.model.family->name == "gpt";
  const Model plain = build({.cache = 1});
  for (const TensorSpec& tensor : parameter_specs(plain)) {
    const auto found = stored.find(renamed ? without_prefix(tensor.name) : tensor.name);
    LOCKSTEP_CHECK(found != stored.end() && found->second.shape == tensor.shape, "{} has no {}", path_,
                   tensor.name);
    add(tensor.name, found->second);
  }
  read_ = [run](const TensorSpec& tensor, int64_t first, std::span<std::byte> into) {
    run->read(tensor, first, into);
  };
  description_ = fmt::format("{} ({}, step {})", path_, spec.model.family->name, run->step());
  finish(precision, computes_in_bf16(spec.train.precision));
}

void GeneratingModel::add(const std::string& name, const TensorSpec& stored) {
  stored_[name] = {stored, stored.dtype};
  parameters_ += stored.shape.numel();
}

// Norms and biases that are stored in f32 stay so: products alone are worth bf16.
void GeneratingModel::finish(Precision precision, bool bf16_otherwise) {
  precision_ = precision.value_or(bf16_otherwise ? DType::kBF16 : DType::kF32);
  for (auto& [name, stored] : stored_) {
    const bool narrow = precision_ == DType::kBF16 &&
                        (stored.tensor.dtype == DType::kBF16 || stored.tensor.shape.rank() >= 2);
    stored.kept = narrow ? DType::kBF16 : DType::kF32;
    weight_bytes_ += stored.tensor.shape.numel() * size_of(stored.kept);
  }
}

Model GeneratingModel::build(HfGraph graph) const {
  graph.training = false;
  graph.cache_type = precision_;
  Model model = family_->build(graph);
  if (adapted_) model = adapted_(std::move(model));
  if (stored_.empty()) return model;
  return with_frozen(model, [this](const std::string& name) { return stored_.at(name).kept; });
}

PassOptions GeneratingModel::passes() const {
  PassOptions passes;
  passes.compute = precision_;
  return passes;
}

void GeneratingModel::load(Backend& backend) {
  for (const auto& [name, stored] : stored_) {
    auto buffer = backend.allocate(stored.tensor.shape.numel() * size_of(stored.kept));
    const int64_t count = stored.tensor.shape.numel();
    const int64_t from = size_of(stored.tensor.dtype), to = size_of(stored.kept);
    std::vector<std::byte> read(static_cast<size_t>(std::min(count, kPieceElements) * from));
    std::vector<std::byte> converted(static_cast<size_t>(std::min(count, kPieceElements) * to));
    for (int64_t first = 0; first < count; first += kPieceElements) {
      const int64_t part = std::min(kPieceElements, count - first);
      const auto bytes = std::span(read).first(static_cast<size_t>(part * from));
      read_(stored.tensor, first * from, bytes);
      const bool same = stored.tensor.dtype == stored.kept;
      if (!same) convert_elements(stored.tensor.dtype, bytes.data(), stored.kept, converted.data(), part);
      backend.upload(static_cast<std::byte*>(buffer->data()) + first * to,
                     same ? bytes.data() : converted.data(), part * to);
    }
    weights_[name] = std::move(buffer);
  }
}

}  // namespace lockstep
