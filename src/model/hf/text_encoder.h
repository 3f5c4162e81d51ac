// What the encoders of text share: the inputs of a graph, attention over the tokens of a row, dropout where a
// family has it, and the outputs of each head. A family adds what stands between them, in a file that reads
// as the model's definition.
#pragma once
#include <string>

#include "model/hf/activation.h"
#include "model/hf/family.h"
#include "model/layers.h"

namespace lockstep {

class EncoderGraph;

class HfTextEncoder : public HfModel {
 public:
  Model build(const HfGraph& graph) const override;

 protected:
  // The logits of the head, [B*T, V or classes] or of sequences [B, classes].
  virtual Value logits(EncoderGraph& b) const = 0;

  friend class EncoderGraph;
  int64_t layers = 0, dim = 0, heads = 0, hidden = 0;
  int64_t types = 0;  // of tokens; 0: the family has none
  double epsilon = 1e-12;
  double deviation = 0.02;  // of new weights: initializer_range
  double dropout = 0, attention_dropout = 0, classifier_dropout = 0;
  HfActivation activation = HfActivation::kGelu;
};

// The number of classes of a head that chooses one of them, 0 for masked LM. Throws UserError for problems of
// another type.
int64_t read_class_count(const HfConfig& config, HfHead head);
// The token that fills rows up, of a vocabulary.
int64_t read_padding(const HfConfig& config, int64_t otherwise, int64_t vocab);
// A probability of dropout.
double read_dropout(const HfConfig& config, std::string_view key, double otherwise);
// Throws UserError unless the width divides into heads.
void check_head_width(const HfConfig& config, std::string_view key, int64_t dim, int64_t heads);

// The graph of an encoder while it is built.
class EncoderGraph : public Layers {
 public:
  EncoderGraph(Model& model, const HfGraph& graph, const HfTextEncoder& encoder);

  Value tokens() const { return tokens_; }
  // i32[B,T] where rows hold several documents, or none: 0, 1, 2 ... in every row.
  Value positions() const { return positions_; }
  const HfGraph& settings() const { return graph_; }

  // A table whose row for padding begins at 0; and its rows by i32[B,T], through which that row gets no
  // gradient.
  Value padded_table(const std::string& name, int64_t rows);
  Value padded_rows(Value table, Value ids);
  // Rows of a table of positions by positions(): [T,C] or [B,T,C].
  Value position_rows(const std::string& name, int64_t rows);
  // What is added for the types of tokens: [B,T,C], or [1,C] where all are of type 0.
  Value type_rows(const std::string& name);

  // Nothing in a graph that does not train.
  Value dropout(Value x, double probability) { return Layers::dropout(x, graph_.training ? probability : 0); }
  Value dropout(Value x) { return dropout(x, encoder_.dropout); }
  Value act(Value x) { return activate(*this, encoder_.activation, x); }
  Value norm(const std::string& name, Value x) { return layer_norm(name, x, encoder_.epsilon); }
  Value linear(const std::string& name, Value x, int64_t out) {
    return Layers::linear(name, x, out, encoder_.deviation);
  }
  // Attention of every position to those of its row (and document) that hold a token: [B,T,C].
  Value attend(const std::string& query, const std::string& key, const std::string& value, Value x);
  // x [B,T,C] of the first position, [B,C]; of all positions as rows, [B*T,C].
  Value first(Value x);
  Value rows(Value x);

 private:
  HfGraph graph_;
  const HfTextEncoder& encoder_;
  AttentionLayer attention_;
  Value tokens_, positions_;
};

}  // namespace lockstep
