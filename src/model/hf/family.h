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

  // > 0: the graph that generates, of causal LMs: the keys and values of up to S = cache tokens are kept.
  //
  // State, written in place: per layer n cache.<n>.key and cache.<n>.value [B,S,Hkv,D] of cache_type, keys
  // turned by their positions already. A layer with a window of W < S tokens has W slots instead.
  // Inputs: tokens i32[B,T]; positions i32[B,T], each below positions(); slots i32[T], where the new tokens'
  // keys and values go, negative: nowhere; visible u8, see below. Where there are windows also window_slots
  // i32[T] and window_visible, for the layers that have one.
  // Output: logits f32[B,V] of what follows the last position of each row.
  //
  // T = 1 reads one more token: it sees the slots, its own included, of which visible u8[B,S] and
  // window_visible u8[B,W] are not 0. Nothing depends on a slot's index, so that a window is a ring. T > 1
  // reads a text from its beginning: tokens see each other alone, by index, where visible u8[B,T] is not 0.
  // Rows of different lengths are padded in front.
  int64_t cache = 0;
  DType cache_type = DType::kF32;
  // Positions are below this; rope scalings that depend on the length take it as the length of the text. 0:
  // the cache, or seq where there is none.
  int64_t length = 0;

  int64_t positions() const { return length > 0 ? length : cache > 0 ? cache : seq; }
};

// A family with the numbers of one config.json.
class HfModel {
 public:
  virtual ~HfModel() = default;
  virtual Model build(const HfGraph& graph) const = 0;
  // Texts of more tokens than `length`, up to so many, are turned by the same angles: a rope scaling that
  // depends on the length gives others beyond, and keys in a cache are then of no use.
  virtual int64_t same_angles_up_to(int64_t /*length*/) const { return INT64_MAX; }

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
