// What only some formats of the data section have: corpora of tokens, and images. Both sources of a run are
// read alike, but for what is random: that is for training only.
#include "job/fields.h"

namespace lockstep {
namespace {

constexpr std::string_view kFormat = "data.train.format";

std::vector<std::pair<std::string_view, std::string>> for_documents(std::string_view value) {
  std::vector<std::pair<std::string_view, std::string>> cases;
  for (const DataFormat format : kTableFormats) cases.emplace_back(name_of(format), std::string(value));
  cases.emplace_back("text", std::string(value));
  return cases;
}

// Corpora of tokens too, where the default is another.
std::vector<std::pair<std::string_view, std::string>> for_corpora(std::string_view of_tokens) {
  auto cases = for_documents("");
  cases.emplace_back("tokens", std::string(of_tokens));
  return cases;
}

std::vector<std::pair<std::string_view, std::string>> for_images(std::string_view value) {
  return {{"images", std::string(value)}, {"tar", std::string(value)}};
}

}  // namespace

std::vector<Field> corpus_fields() {
  return {
      LOCKSTEP_FIELD(
          data.pack,
          "how documents become rows of model.seq tokens: the row of all tokens is split, or whole "
          "documents are packed where they fit best")
          .or_else("split; of conversations best_fit")
          .when(kFormat, for_corpora("split")),
      LOCKSTEP_FIELD(data.documents,
                     "whether a row's documents are joined, or separate: no attention and no target across "
                     "them, positions counted anew in each")
          .or_else("joined; of conversations separate")
          .when(kFormat, for_corpora("joined")),
      LOCKSTEP_FIELD(
          data.tokenizer,
          "what makes tokens of text: a model's folder, a tokenizer.json or a SentencePiece .model")
          .names_files()
          .or_else("that of model.hf; of other models the bytes of text files are tokens")
          .example("./folder")
          .when(kFormat, for_documents("")),
      LOCKSTEP_FIELD(
          data.chat_template,
          "how conversations are written as text: auto, as the tokenizer's folder says, or the name "
          "of a template (docs/fine-tuning.md)")
          .example("chatml")
          .when(kFormat, for_documents("auto")),
      LOCKSTEP_FIELD(data.loss_on, "what of conversations is learnt: the responses, or all that is said")
          .when(kFormat, for_documents("responses")),
      LOCKSTEP_FIELD(data.text_documents,
                     "what a document is, where text files are tokenized; block: lines up to a blank one")
          .when(kFormat, {{"text", "file"}}),
  };
}

std::vector<Field> mask_fields() {
  const auto of_folders = [](Field field) {
    return std::move(field).when("model.family", {{kOfFolder, ""}});
  };
  return {
      of_folders(LOCKSTEP_FIELD(data.mask.share,
                                "for models with a masked LM head: share of the tokens that are to be found "
                                "again, others in every epoch; those to evaluate with stay the same")
                     .above(0)
                     .below(1)
                     .or_else("0.15")
                     .example("0.15")),
      of_folders(LOCKSTEP_FIELD(data.mask.replace, "share of these that become the mask token")
                     .at_least(0)
                     .at_most(1)
                     .or_else("0.8")),
      of_folders(LOCKSTEP_FIELD(data.mask.random,
                                "share of these that become any token; the others stay as they are")
                     .at_least(0)
                     .at_most(1)
                     .or_else("0.1")),
      of_folders(LOCKSTEP_FIELD(data.mask.token, "the mask token, by its number")
                     .at_least(0)
                     .at_most(2147483647)
                     .example("103")
                     .or_else("that of the folder's tokenizer")),
      of_folders(LOCKSTEP_FIELD(data.mask.special, "tokens that are never masked, by their numbers")
                     .at_least(0)
                     .at_most(2147483647)
                     .example("[0, 101, 102]")
                     .or_else("the special ones of the folder's tokenizer")),
  };
}

std::vector<Field> image_fields() {
  return {
      LOCKSTEP_FIELD(data.images.crop,
                     "the part of a training image that is scaled to model.image: the largest square in the "
                     "middle, or another part in every epoch")
          .when(kFormat, for_images("random")),
      LOCKSTEP_FIELD(data.images.area, "least share of an image that a random crop covers")
          .above(0)
          .at_most(1)
          .when(kFormat, for_images("0.08")),
      LOCKSTEP_FIELD(data.images.ratio, "least and greatest width to height of a random crop")
          .above(0)
          .at_most(100)
          .when(kFormat, for_images("[0.75, 1.3333333333333333]")),
      LOCKSTEP_FIELD(data.images.flip, "mirror every second training image")
          .when(kFormat, for_images("true")),
      LOCKSTEP_FIELD(
          data.images.jitter,
          "how far brightness, contrast and saturation of training images vary: 0.4 is from 0.6 to "
          "1.4 times")
          .at_least(0)
          .below(1)
          .when(kFormat, for_images("0")),
      LOCKSTEP_FIELD(data.images.brightness, "how far brightness varies, where it is not jitter")
          .at_least(0)
          .at_most(1)
          .or_else("jitter")
          .when(kFormat, for_images("")),
      LOCKSTEP_FIELD(data.images.contrast, "how far contrast varies, where it is not jitter")
          .at_least(0)
          .at_most(1)
          .or_else("jitter")
          .when(kFormat, for_images("")),
      LOCKSTEP_FIELD(data.images.saturation, "how far saturation varies, where it is not jitter")
          .at_least(0)
          .at_most(1)
          .or_else("jitter")
          .when(kFormat, for_images("")),
      LOCKSTEP_FIELD(data.images.hue,
                     "part of their circle that the colours of training images are turned by, at most")
          .at_least(0)
          .at_most(0.5)
          .when(kFormat, for_images("0")),
      LOCKSTEP_FIELD(data.images.grayscale, "share of the training images that lose their colours")
          .at_least(0)
          .at_most(1)
          .when(kFormat, for_images("0")),
      LOCKSTEP_FIELD(data.images.fit,
                     "what of an image is taken where it is not cut at random: the square in the middle, or "
                     "the whole of it, stretched")
          .when(kFormat, for_images("crop")),
      LOCKSTEP_FIELD(
          data.images.resize,
          "pixels that the short side is scaled to where the middle is taken, of which model.image are "
          "kept; 256 for 224 leaves the border out")
          .at_least(1)
          .at_most(65536)
          .or_else("model.image")
          .when(kFormat, for_images("")),
      LOCKSTEP_FIELD(data.images.mean, "of red, green and blue, from 0 to 1: what is taken off")
          .at_least(0)
          .at_most(1)
          .when(kFormat, for_images("[0.485, 0.456, 0.406]")),
      LOCKSTEP_FIELD(data.images.deviation, "of red, green and blue: what is divided by then")
          .above(0)
          .at_most(1)
          .when(kFormat, for_images("[0.229, 0.224, 0.225]")),
  };
}

}  // namespace lockstep
