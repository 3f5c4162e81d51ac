// A Hugging Face family: from config.json to the graphs of its model.
//
// A family is a file of this folder with a function <name>_hf_family() and a word in the list of families.cc.
// Its parameters have the names, shapes and order of axes of the files that transformers 4 wrote (version 5
// writes the same), so that weights are read and written without a table of names.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/hf/config.h"
#include "model/model.h"

namespace lockstep {

// What stands on the last layer, and with it the graph's inputs and its task.
//
//   head            inputs beside tokens i32[B,T]         counts          answers (training = false)
//   kCausalLm       targets i32[B,T], already shifted     targets >= 0    i32[B*T], the next token
//   kMaskedLm       targets i32[B,T], -100 where unmasked targets >= 0    i32[B*T], the token
//   kSequenceClass  labels i32[B]                         sequences       i32[B], the class
//   kTokenClass     targets i32[B,T], -100: not counted   targets >= 0    i32[B*T], the class
//   kImageClass     (images f32[B,S,S,3] for tokens) labels i32[B]        i32[B], the class
enum class HfHead : uint8_t { kCausalLm, kMaskedLm, kSequenceClass, kTokenClass, kImageClass };
std::string_view name_of(HfHead head);

// One graph of the model. Outputs are those of model/model.h: loss, count and, to evaluate with, the answer.
struct HfGraph {
  int64_t batch = 1, seq = 1;
  bool training = true;    // false: no dropout, and a third output with what the model answers
  bool documents = false;  // rows of several documents: further inputs documents, positions i32[B,T]
  bool padded = false;     // a further input keys_visible u8[B,T]: 0 where a position holds no token
  bool segments = false;   // of encoders: a further input segments i32[B,T], types of tokens; else all are 0

  // > 0: the graph that generates, of causal LMs. T = seq new tokens per row, S = cache earlier ones.
  //
  // Inputs: tokens i32[B,T]; positions i32[B,T], each below `length`; per layer n cache.<n>.key and
  // cache.<n>.value f32[B,S,Hkv,D]; visible u8[B,S+T], 0 for a slot of the cache or a new token that nobody
  // may see. Where a layer has a sliding window also visible_window u8[B,S+T], which such layers take in its
  // place.
  // Outputs: logits f32[B,V] of the last position of each row; then per layer the new tokens' keys and values
  // f32[B,T,Hkv,D], keys turned by their positions already: what the driver puts into the cache.
  //
  // A new token sees every visible slot of the cache, and of the new tokens those up to itself. Slots may be
  // filled in any order, since positions come with the tokens: nothing in the graph depends on a slot's
  // index, with one exception. In a sliding layer with T = 1 visible_window alone decides; with T > 1 a query
  // sees the window of slots right before it, by index: there the visible slots must be those next to the new
  // tokens, without a gap, or none (a prompt that is read at once). Rows of different lengths are padded in
  // front, since the logits are those of the last position.
  int64_t cache = 0;
  // Positions are below this; rope scalings that depend on the length take it as the length of the text. 0:
  // cache + seq.
  int64_t length = 0;

  int64_t positions() const { return length > 0 ? length : cache + seq; }
};

// A family with the numbers of one config.json.
class HfModel {
 public:
  virtual ~HfModel() = default;
  virtual Model build(const HfGraph& graph) const = 0;

  std::string_view model_type;  // "llama"
  HfHead head = HfHead::kCausalLm;
  int64_t vocab = 0;          // rows of the table of tokens; 0 for images
  int64_t max_positions = 0;  // the longest sequence that the model was made for
  int64_t classes = 0;        // of classification heads
  // Their names in the order of their numbers; empty where config.json has none but LABEL_0, LABEL_1 ...
  std::vector<std::string> class_names = {};
  int64_t image = 0;  // pixels along a side, of images
  std::optional<int64_t> padding_token = {};
  // Tied: the first name of each pair is not in the graph, and is the second one on disk (where it may be
  // left out).
  std::vector<std::pair<std::string, std::string>> tied_names = {};
  // Names on disk may lack this prefix, or have it where the graph does not ("transformer.", "model.").
  std::string_view base_prefix = {};
  // Tensors on disk that begin so are of parts that the graph does not have (a tower for images).
  std::vector<std::string_view> ignored_prefixes = {};
};

struct HfFamily {
  std::string_view model_type;
  std::vector<std::pair<std::string_view, HfHead>> architectures;  // "LlamaForCausalLM", kCausalLm
  std::unique_ptr<HfModel> (*make)(const HfConfig& config, HfHead head);
};

// The usual `make`: a model class built from (config, head).
template <typename ModelClass>
std::unique_ptr<HfModel> make_hf(const HfConfig& config, HfHead head) {
  return std::make_unique<ModelClass>(config, head);
}

// In the order of the documentation.
const std::vector<const HfFamily*>& hf_families();

// The model that config.json describes: its model_type and its one architecture name family and head. Refuses
// unknown ones by name and says which there are.
std::unique_ptr<HfModel> make_hf_model(const HfConfig& config);
// The same body under another head, for a model to be tuned for another task ("LlamaForCausalLM" loaded as a
// classifier): the head's own parameters then begin as `model.init: random` has them.
std::unique_ptr<HfModel> make_hf_model(const HfConfig& config, HfHead head);

// How many classes a classification head has: the labels of id2label, else num_labels, else 2.
int64_t read_classes(const HfConfig& config);

}  // namespace lockstep
