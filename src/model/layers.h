// Layers: what families are built of. A layer is named as Hugging Face or torchvision name it, and its
// parameters are <name>.weight and <name>.bias.
//
// The order in which a family calls these is the order of its ops and parameters, and with it part of its
// bits: a layer emits its own nodes in one fixed order and nothing else.
#pragma once
#include <optional>
#include <string>

#include "model/model_builder.h"

namespace lockstep {

// Who sees whom. Queries may have more heads than keys and values: groups of them then share a key head.
struct AttentionLayer {
  int64_t heads = 1;
  int64_t kv_heads = 1;
  bool causal = false;
  Value keys_visible = {};  // u8[B,S]: 0 where a key is padding
  Value documents = {};     // i32[B,T]: a query sees keys of its own document only
  int64_t window = 0;       // a query sees so many keys up to its own; 0: all of them
  double scale = 0;         // of the scores; 0: 1 / sqrt(D)
  double cap = 0;           // scores are bent below it: cap tanh(score / cap); 0: not
  double dropout = 0;       // of the weights, after softmax
};

class Layers : public ModelBuilder {
 public:
  using ModelBuilder::ModelBuilder;

  // x·W + b with W stored [out, in] (everywhere) or [in, out] (GPT-2); weights begin normal, biases at 0.
  Value linear(const std::string& name, Value x, int64_t out, double deviation);
  Value linear_in_out(const std::string& name, Value x, int64_t out, double deviation);
  Value linear_without_bias(const std::string& name, Value x, int64_t out, double deviation);

  Value layer_norm(const std::string& name, Value x, double epsilon);
  Value rms_norm(const std::string& name, Value x, double epsilon);
  // Means and variances are statistics: call write_statistics when all outputs are there.
  Value batch_norm(const std::string& name, Value x, double epsilon, bool training);

  // (silu(x·gate) * x·up)·down, without biases: the MLP of llama and its kin, under
  // <name>.gate_proj, .up_proj and .down_proj.
  Value gated_mlp(const std::string& name, Value x, int64_t hidden, double deviation, double out_deviation);

  // Rows of a table that begins normal.
  Value embedding(const std::string& name, Value ids, int64_t rows, int64_t dim, double deviation);
  Value embedding(Value table, Value ids) { return op("embedding", {table, ids}); }
  // One row stands for padding: it begins at 0 and has no gradient from here. No value of `padding`: none
  // does.
  struct Table {
    Value table, rows;
  };
  Table padded_embedding(const std::string& name, Value ids, int64_t rows, int64_t dim, double deviation,
                         std::optional<int64_t> padding);

  // x: [B,T,H D] as [B,T,H,D].
  Value split_heads(Value x, int64_t heads);
  // Rotary positions for the heads of queries or keys; positions i32[B,T], or none for 0, 1, 2 ...
  Value rope(Value heads, double base, Value positions = {});
  // q [B,T,H,D] over k and v [B,S,Hkv,D]; the result is [B,T,H D].
  Value attention(Value q, Value k, Value v, const AttentionLayer& layer);
  // The same over one packed projection [B,T,(H + 2 Hkv) D].
  Value attention_qkv(Value qkv, const AttentionLayer& layer);

  // Turns dropout on for this model, which then takes an input rng i64[2]; every call draws on its own.
  void use_dropout(double probability);
  Value dropout(Value x);
  // The same with a probability of its own; 0 draws nothing, and needs no rng.
  Value dropout(Value x, double probability);

 private:
  Value rng();
  void drop_weights(const AttentionLayer& layer, Attributes& attributes, std::vector<Value>& operands);
  double dropout_ = 0;
  Value rng_;  // made where it is first needed
  int64_t next_key_ = 0;
};

}  // namespace lockstep
