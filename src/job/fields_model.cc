// The model section. Defaults are those of the families in src/model.
#include "job/fields.h"

namespace lockstep {

std::vector<Field> model_fields() {
  constexpr std::string_view kFamily = "model.family";
  return {
      LOCKSTEP_FIELD(model.family, "the shape of the network").required(),
      LOCKSTEP_FIELD(model.hf, "a Hugging Face model folder, instead of a family")
          .or_else("none")
          .example("./folder"),
      LOCKSTEP_FIELD(model.onnx, "an ONNX file, instead of a family")
          .or_else("none")
          .example("prototype.onnx"),
      LOCKSTEP_FIELD(model.layers, "transformer blocks")
          .at_least(1)
          .at_most(1024)
          .when(kFamily, {{"gpt", "12"}, {"encoder", "12"}}),
      LOCKSTEP_FIELD(model.dim, "width of a position, or of a table's rows")
          .at_least(1)
          .at_most(1 << 20)
          .when(kFamily, {{"gpt", "768"}, {"encoder", "768"}, {"tabular", "32"}}),
      LOCKSTEP_FIELD(model.heads, "attention heads; must divide dim")
          .at_least(1)
          .at_most(1 << 16)
          .when(kFamily, {{"gpt", "12"}, {"encoder", "12"}}),
      LOCKSTEP_FIELD(model.hidden, "width between the two layers of a block's MLP")
          .at_least(1)
          .at_most(1 << 22)
          .or_else("4 x dim")
          .when(kFamily, {{"encoder", ""}}),
      LOCKSTEP_FIELD(model.vocab, "different tokens; 256 for bytes")
          .at_least(2)
          .at_most(1 << 28)
          .when(kFamily, {{"gpt", "50304"}, {"encoder", "30522"}}),
      LOCKSTEP_FIELD(model.seq, "tokens in a sample")
          .at_least(1)
          .at_most(1 << 20)
          .when(kFamily, {{"gpt", "256"}, {"encoder", "128"}}),
      LOCKSTEP_FIELD(model.dropout, "probability of dropping an activation")
          .at_least(0)
          .below(1)
          .when(kFamily, {{"gpt", "0"}, {"encoder", "0"}}),
      LOCKSTEP_FIELD(model.classes, "different labels")
          .at_least(2)
          .at_most(1 << 24)
          .when(kFamily, {{"encoder", "2"}, {"resnet", "1000"}}),
      LOCKSTEP_FIELD(model.depth, "18 or 50 layers")
          .at_least(18)
          .at_most(50)
          .when(kFamily, {{"resnet", "18"}}),
      LOCKSTEP_FIELD(model.width, "channels of the first stage")
          .at_least(1)
          .at_most(1 << 14)
          .when(kFamily, {{"resnet", "64"}}),
      LOCKSTEP_FIELD(model.image, "pixels along an image's side")
          .at_least(8)
          .at_most(4096)
          .when(kFamily, {{"resnet", "64"}}),
      LOCKSTEP_FIELD(model.tables, "categorical inputs, each with a table of its own")
          .at_least(1)
          .at_most(4096)
          .or_else("one per categorical column of the data")
          .when(kFamily, {{"tabular", ""}}),
      LOCKSTEP_FIELD(model.rows, "rows of a table; categories are hashed into them")
          .at_least(1)
          .at_most(int64_t{1} << 31)
          .when(kFamily, {{"tabular", "100000"}}),
      LOCKSTEP_FIELD(model.dense, "numeric inputs")
          .at_least(1)
          .at_most(1 << 16)
          .or_else("one per numeric column of the data")
          .when(kFamily, {{"tabular", ""}}),
      LOCKSTEP_FIELD(model.bottom,
                     "widths of the layers over the numeric inputs, before a last one of width dim")
          .at_least(1)
          .at_most(1 << 16)
          .when(kFamily, {{"tabular", "[512, 256]"}}),
      LOCKSTEP_FIELD(model.top, "widths of the layers over the products, before the last one of width 1")
          .at_least(1)
          .at_most(1 << 16)
          .when(kFamily, {{"tabular", "[512, 256]"}}),
  };
}

}  // namespace lockstep
