#include "run/export_description.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/version.h"
#include "job/fields.h"
#include "job/value.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string_view type_name(OnnxType type) {
  switch (type) {
    case OnnxType::kFloat: return "float32";
    case OnnxType::kInt64: return "int64";
    case OnnxType::kBool: return "bool";
    case OnnxType::kFloat16: return "float16";
    case OnnxType::kBFloat16: return "bfloat16";
  }
  return "";
}

std::string extent_text(const OnnxDim& dim) {
  if (!dim.batch) return std::to_string(dim.extent);
  return dim.extent == 1 ? kOnnxBatch : fmt::format("{}*{}", dim.extent, kOnnxBatch);
}

// A value as the job file would have it; text that is no JSON stays text.
Json value_of(const std::string& text) {
  const Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_discarded() ? Json(text) : parsed;
}

Json model_json(const JobSpec& spec) {
  Json json;
  for (const Field& field : job_fields()) {
    constexpr std::string_view kSection = "model.";
    if (!field.path().starts_with(kSection) || !spec.origins.contains(std::string(field.path()))) continue;
    if (const auto text = value_text(field, spec))
      json[std::string(field.path().substr(kSection.size()))] = value_of(*text);
  }
  return json;
}

// What the caller must put in.
std::string meaning(std::string_view name, const TrainedModel& model) {
  const ModelFamily& family = *model.spec().model.family;
  const int64_t seq = model.spec().model.seq;
  if (name == "dense")
    return "the numbers of a record in the order of encoding.dense, each encoded as its entry says";
  if (name == "ids")
    return "the categories of a record in the order of encoding.ids, each as its row's number";
  if (name == "images")
    return "rows, columns, then red, green, blue; every one (value / 255 - mean) / deviation of its colour";
  if (name == "token_type_ids") return "0 everywhere for a single text";
  if (name == "attention_mask") return "1 where a position holds a token, 0 where it is filled up";
  if (name != "input_ids") return "";
  if (family.records == Records::kText)
    return fmt::format(
        "{} tokens: 0, which opens the row, then each byte of the text plus 1, unless the job's transforms "
        "make "
        "other tokens; longer texts are cut, shorter ones filled up with 0",
        seq);
  return fmt::format(
      "{} tokens in the vocabulary of the training data; no position sees a later one, so that a shorter "
      "text "
      "may be filled up with anything behind it",
      seq);
}

std::string answer(std::string_view name) {
  if (name == "logits") return "scores before they are made probabilities";
  if (name == "probability")
    return "that the label is 1, or the second of encoding.labels.classes where there are such";
  if (name == "probabilities") return "of each class; of a table in the order of encoding.labels.classes";
  if (name == "classes") return "the place of the class with the highest score";
  if (name == "values") return "what the model predicts, in the units of the label";
  return "";
}

Json port_json(const OnnxPort& port, const std::string& meaning) {
  Json shape = Json::array();
  for (const OnnxDim& dim : port.dims)
    if (dim.batch)
      shape.push_back(extent_text(dim));
    else
      shape.push_back(dim.extent);
  Json json = {{"name", port.name}, {"type", type_name(port.type)}, {"shape", shape}};
  if (!meaning.empty()) json["meaning"] = meaning;
  return json;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// "NAME key=value key=value word": names may hold blanks, values do not. `first` is the first key.
Json keyed_line(std::string_view line, std::string_view first) {
  const size_t at = line.rfind(fmt::format(" {}=", first));
  if (at == std::string_view::npos) return nullptr;
  Json json = {{"column", line.substr(0, at)}};
  for (std::string_view rest = line.substr(at + 1); !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      json[std::string(word)] = true;
    else
      json[std::string(word.substr(0, equals))] = value_of(std::string(word.substr(equals + 1)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return json;
}

// A place in the input before what the line says.
void add_placed(Json& list, Json line) {
  Json placed = {{"index", list.size()}};
  placed.update(line);
  list.push_back(std::move(placed));
}

}  // namespace

std::string port_text(const OnnxPort& port) {
  std::vector<std::string> extents;
  for (const OnnxDim& dim : port.dims) extents.push_back(extent_text(dim));
  return fmt::format("{}[{}]", type_name(port.type), fmt::join(extents, ","));
}

Json encoding_json(std::string_view text) {
  Json json = {{"dense", Json::array()}, {"ids", Json::array()}};
  // The table's own lines come last and begin with its label; before them each transform has its own.
  size_t table = text.starts_with("label ") ? 0 : text.rfind("\nlabel ");
  table = table == std::string_view::npos ? text.size() : table == 0 ? 0 : table + 1;
  Json transforms = Json::array(), flags = Json::array(), other = Json::array();
  for (const std::string_view line : lines_of(text.substr(0, table))) transforms.push_back(line);
  for (std::string_view line : lines_of(text.substr(table))) {
    const auto take = [&](std::string_view word) {
      if (!line.starts_with(word)) return false;
      line.remove_prefix(word.size());
      return true;
    };
    if (take("label ")) {
      json["label"] = line;
    } else if (take("labels ")) {
      json["labels"] = value_of(std::string(line));
    } else if (take("numeric ")) {
      Json column = keyed_line(line, "log1p");
      if (column.is_null())
        throw UserError("encoding.txt has a line that this version cannot read: {}", line);
      if (column.value("flag", false)) flags.push_back({{"column", column["column"]}, {"missing", true}});
      column.erase("flag");
      add_placed(json["dense"], std::move(column));
    } else if (take("categorical ")) {
      Json column = keyed_line(line, "buckets");
      if (column.is_null()) column = keyed_line(line, "ids");
      if (column.is_null())
        throw UserError("encoding.txt has a line that this version cannot read: {}", line);
      add_placed(json["ids"], std::move(column));
    } else {
      other.push_back(line);
    }
  }
  for (Json& flag : flags) add_placed(json["dense"], std::move(flag));
  if (!transforms.empty()) json["transforms"] = std::move(transforms);
  if (!other.empty()) json["other"] = std::move(other);
  return json;
}

Json describe_export(const TrainedModel& model, const OnnxModel& onnx) {
  const JobSpec& spec = model.spec();
  Json json = {{"made_by", fmt::format("lockstep {}", kVersion)},
               {"job", spec.name},
               {"step", model.step()},
               {"identity_sha256", model.identity().sha256()},
               {"moving_averages", model.averaged()},
               {"model", model_json(spec)},
               {"inputs", Json::array()},
               {"outputs", Json::array()}};
  for (const OnnxPort& port : onnx.inputs)
    json["inputs"].push_back(port_json(port, meaning(port.name, model)));
  for (const OnnxPort& port : onnx.outputs) json["outputs"].push_back(port_json(port, answer(port.name)));
  if (spec.model.family->records == Records::kTable) json["encoding"] = encoding_json(model.encoding());
  if (spec.model.family->records == Records::kImages)
    json["images"] = {{"size", spec.model.image},
                      {"resize", spec.data.images.resize.value_or(spec.model.image)},
                      {"mean", spec.data.images.mean},
                      {"deviation", spec.data.images.deviation}};
  if (spec.model.family->records == Records::kText && !model.encoding().empty())
    json["transforms"] = lines_of(model.encoding());
  return json;
}

}  // namespace lockstep
