// What decoder families share: the inputs of a graph, attention over a row or over a cache and a row, the
// table of tokens, and the heads. A family adds the body between them, in a file that reads as the model's
// definition.
#pragma once
#include <string>
#include <vector>

#include "model/hf/activation.h"
#include "model/hf/family.h"
#include "model/hf/rope.h"
#include "model/layers.h"

namespace lockstep {

class DecoderGraph;

class HfDecoder : public HfModel {
 public:
  Model build(const HfGraph& graph) const override;

 protected:
  // A number of layers, which no model has more than thousands of.
  static int64_t read_layers(const HfConfig& config, std::string_view key);
  // Reads what the heads need: classes, dropout, problem_type, pad_token_id, tie_word_embeddings,
  // initializer_range. `vocab` and `max_positions` are the family's to set.
  void read_head(const HfConfig& config, HfHead head, bool tied_otherwise,
                 std::optional<int64_t> padding_otherwise = {});
  // The hidden states [B,T,C] after the last norm.
  virtual Value body(DecoderGraph& b) const = 0;

  friend class DecoderGraph;
  bool tied = false;
  std::optional<int64_t> embedding_padding = {};  // a row of the table that is not trained as an input
  double deviation = 0.02;                        // of new weights: initializer_range
  double attention_dropout = 0;                   // of the weights of attention
  double logit_cap = 0;                           // of the logits: cap tanh(x / cap); 0: none
  double classifier_dropout = 0.1;                // of token classification
  std::string embedding_name = "model.embed_tokens";
  std::string lm_head_name = "lm_head";
  std::string token_head_name = "score";
};

// How one layer attends.
struct DecoderAttention {
  int64_t heads = 1, kv_heads = 1;
  int64_t window = 0;  // 0: all keys up to the query's own
  double scale = 0;    // 0: 1 / sqrt(D)
  double cap = 0;      // of the scores; 0: none
};

// The graph of a decoder while it is built.
class DecoderGraph : public Layers {
 public:
  DecoderGraph(Model& model, const HfGraph& graph, const HfDecoder& decoder);

  // Rows of the table of tokens [B,T,C].
  Value embed_tokens(int64_t width);
  // i32[B,T], or none: 0, 1, 2 ... in every row.
  Value positions() const { return positions_; }
  const HfGraph& settings() const { return graph_; }
  bool generates() const { return graph_.cache > 0; }
  // 0 where the graph is not one to train with.
  double in_training(double probability) const { return graph_.training && !generates() ? probability : 0; }

  using Layers::linear;
  // x·W, with a bias where asked for; W is [out, in]. Without a deviation of its own W begins with the
  // model's.
  Value linear(const std::string& name, Value x, int64_t out, bool bias,
               std::optional<double> deviation = {});
  // The heads [B,T,H,D] of a projection turned by their positions; of a packed one the first `count` alone.
  Value turned(Value heads, const HfRotation& rotation, int64_t count = 0);
  // Attention of the next layer, over [B,T,H,D] and [B,T,Hkv,D]: [B,T,H D]. Through the layer's cache where
  // there is one.
  Value attend(Value q, Value k, Value v, const DecoderAttention& layer);

  // The same over one packed projection [B,T,(H + 2 Hkv) D].
  Value attend_packed(Value qkv, const DecoderAttention& layer);
  // Rows of a learned table of positions, [T,C] or [B,T,C]; it has max_positions rows.
  Value learned_positions(const std::string& name, int64_t width);

  // cap tanh(x / cap).
  Value capped(Value x, double cap);

  // The outputs, from the hidden states after the last norm.
  void finish(Value x);

 private:
  AttentionLayer rule_of(const DecoderAttention& layer) const;
  Value attend_cached(Value q, Value k, Value v, const DecoderAttention& layer);
  Value kept(const std::string& name, Value rows, int64_t slots, Value where);
  Value logits(Value rows);
  Value last_token_rows(Value x);
  void classify_sequences(Value x);
  void classify_tokens(Value x);

  HfGraph graph_;
  const HfDecoder& decoder_;
  Value tokens_, targets_, documents_, positions_, visible_;
  Value slots_, window_slots_, window_visible_;  // of the graph that generates
  int64_t window_ = 0;                           // of the layers that have one
  Value table_;
  int64_t next_layer_ = 0;
  std::vector<std::pair<Value, Value>> filled_;  // a cache and what it becomes
};

}  // namespace lockstep
