// The body that BERT and RoBERTa have: embeddings of tokens, positions and types under one norm, then blocks
// with the norm after each residual (Devlin et al., 2018). They differ in their positions and in their heads.
#pragma once
#include "model/hf/text_encoder.h"

namespace lockstep {

class BertBody : public HfTextEncoder {
 protected:
  // What a family takes where config.json says nothing.
  struct Defaults {
    int64_t vocab = 0, padding = 0;
  };
  void read_sizes(const HfConfig& config, HfHead head, const Defaults& defaults);

  int64_t position_rows = 0;  // of the table of positions

  // Rows of the table of positions, [T,C] or [B,T,C]. As written here they are BERT's: 0, 1, 2 ...
  virtual Value positions(EncoderGraph& b, const std::string& name) const;
  // The hidden states [B,T,C], of parameters whose names begin with `name`, over the given table of tokens.
  Value body(EncoderGraph& b, const std::string& name, Value table) const;

 private:
  Value embeddings(EncoderGraph& b, const std::string& name, Value table) const;
  Value block(EncoderGraph& b, const std::string& name, Value x) const;
};

}  // namespace lockstep
