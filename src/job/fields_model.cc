// The model section: what may be said about sizes. Which families have a key, and their defaults for it, is
// theirs to say (model/family.h).
#include <algorithm>
#include <array>

#include "job/fields.h"
#include "job/value.h"

namespace lockstep {
namespace {

Field family_field() {
  const auto set = [](JobSpec& spec, size_t i) { spec.model.family = model_families()[i]; };
  const auto get = [](const JobSpec& spec) -> std::optional<size_t> {
    const auto found = std::ranges::find(model_families(), spec.model.family);
    if (found == model_families().end()) return std::nullopt;
    return static_cast<size_t>(found - model_families().begin());
  };
  return Field("model.family", ChoiceSlot{set, get, family_names()}, "the shape of the network").required();
}

// Keys of families that a Hugging Face folder leaves open too.
constexpr std::array<std::string_view, 2> kAlsoOfFolders = {"model.seq", "model.classes"};

// The field with its default under each of the families that have it.
Field of_families(Field field) {
  std::vector<std::pair<std::string_view, std::string>> cases;
  for (const ModelFamily* family : model_families()) {
    const std::string_view key = field.path().substr(std::string_view("model.").size());
    if (std::ranges::find(family->keys, key) == family->keys.end()) continue;
    JobSpec spec;
    static_cast<ModelSizes&>(spec.model) = family->defaults;
    cases.emplace_back(family->name, value_text(field, spec).value_or(""));
  }
  if (std::ranges::find(kAlsoOfFolders, field.path()) != kAlsoOfFolders.end())
    cases.emplace_back(kOfFolder, "");
  return std::move(field).when("model.family", std::move(cases));
}

std::vector<Field> size_fields() {
  return {
      LOCKSTEP_FIELD(model.layers, "transformer blocks").at_least(1).at_most(1024),
      LOCKSTEP_FIELD(model.dim, "width of a position, or of a table's rows").at_least(1).at_most(1 << 20),
      LOCKSTEP_FIELD(model.heads, "attention heads; must divide dim").at_least(1).at_most(1 << 16),
      LOCKSTEP_FIELD(model.kv_heads,
                     "heads of keys and values, each shared by a group of heads; must divide heads")
          .at_least(1)
          .at_most(1 << 16)
          .or_else("as many as heads"),
      LOCKSTEP_FIELD(model.hidden, "width between the layers of a block's MLP")
          .at_least(1)
          .at_most(1 << 22)
          .or_else("4 x dim; of llama 8/3 x dim, up to a multiple of 256"),
      LOCKSTEP_FIELD(model.vocab, "different tokens; 256 for bytes").at_least(2).at_most(1 << 28),
      LOCKSTEP_FIELD(model.seq, "tokens in a sample").at_least(1).at_most(1 << 20),
      LOCKSTEP_FIELD(model.dropout, "probability of dropping an activation").at_least(0).below(1),
      LOCKSTEP_FIELD(model.rope_theta, "base of the rotary positions' wavelengths").at_least(1).at_most(1e12),
      LOCKSTEP_FIELD(model.norm_epsilon, "what rms norms add to the mean square").above(0).at_most(1),
      LOCKSTEP_FIELD(model.tied, "whether the head reads the embedding's table instead of one of its own"),
      LOCKSTEP_FIELD(model.classes, "different labels").at_least(2).at_most(1 << 24),
      LOCKSTEP_FIELD(model.depth, "18 or 50 layers").at_least(18).at_most(50),
      LOCKSTEP_FIELD(model.width, "channels of the first stage").at_least(1).at_most(1 << 14),
      LOCKSTEP_FIELD(model.image, "pixels along an image's side").at_least(8).at_most(4096),
      LOCKSTEP_FIELD(model.tables, "categorical inputs, each with a table of its own")
          .at_least(1)
          .at_most(4096)
          .or_else("one per categorical column of the data"),
      LOCKSTEP_FIELD(model.rows, "rows of a table; categories are hashed into them")
          .at_least(1)
          .at_most(int64_t{1} << 31),
      LOCKSTEP_FIELD(model.dense, "numeric inputs")
          .at_least(1)
          .at_most(1 << 16)
          .or_else("one per numeric column of the data"),
      LOCKSTEP_FIELD(model.bottom,
                     "widths of the layers over the numeric inputs, before a last one of width dim")
          .at_least(1)
          .at_most(1 << 16),
      LOCKSTEP_FIELD(model.top, "widths of the layers over the products, before the last one")
          .at_least(1)
          .at_most(1 << 16),
      LOCKSTEP_FIELD(
          model.task,
          "what the label asks for; auto: two different labels are binary, texts and few different "
          "whole numbers classification, other numbers regression (docs/input.md)"),
  };
}

}  // namespace

std::vector<Field> model_fields() {
  std::vector<Field> all = {
      family_field(),
      LOCKSTEP_FIELD(model.hf, "a Hugging Face model folder, instead of a family (docs/hugging-face.md)")
          .names_files()
          .or_else("none")
          .example("./folder"),
      LOCKSTEP_FIELD(model.init, "what it begins with: the folder's weights, or drawn ones")
          .when("model.family", {{kOfFolder, "pretrained"}}),
      LOCKSTEP_FIELD(model.head,
                     "what stands on the last layer; one that the folder has no weights for is drawn")
          .or_else("that of the class which config.json names")
          .when("model.family", {{kOfFolder, ""}}),
      LOCKSTEP_FIELD(model.onnx, "an ONNX file, instead of a family; refused by this version")
          .or_else("none")
          .example("prototype.onnx"),
  };
  for (Field& field : size_fields()) all.push_back(of_families(std::move(field)));
  return all;
}

}  // namespace lockstep
