#include "job/schema.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "job/aliases.h"
#include "job/fields.h"
#include "job/yaml_node.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json limited(Json type, const Field& field) {
  if (std::isfinite(field.least()))
    type[field.least_excluded() ? "exclusiveMinimum" : "minimum"] = field.least();
  if (std::isfinite(field.most()))
    type[field.most_excluded() ? "exclusiveMaximum" : "maximum"] = field.most();
  return type;
}

Json choices_of(const Field& field) {
  Json all = field.choices();
  for (const auto& [word, meant] : field.other_words()) {
    if (word == "true" || word == "false")
      all.push_back(word == "true");
    else
      all.push_back(word);
  }
  return all;
}

Json type_of(const Field& field) {
  Json text = {{"type", "string"}};
  switch (field.type()) {
    case FieldType::kAny: return Json::object();
    case FieldType::kInt: return limited({{"type", "integer"}}, field);
    case FieldType::kNumber: return limited({{"type", "number"}}, field);
    case FieldType::kFlag: return {{"type", "boolean"}};
    case FieldType::kText: return text;
    case FieldType::kTexts: return {{"anyOf", {text, {{"type", "array"}, {"items", text}}}}};
    case FieldType::kInts: return {{"type", "array"}, {"items", limited({{"type", "integer"}}, field)}};
    case FieldType::kNumbers: return {{"type", "array"}, {"items", limited({{"type", "number"}}, field)}};
    case FieldType::kTransforms:
      return {{"type", "array"},
              {"items",
               {{"type", "object"}, {"properties", {{"name", text}}}, {"required", Json::array({"name"})}}}};
    case FieldType::kWeightChanges:
      return {{"type", "array"},
              {"items",
               {{"type", "object"},
                {"properties",
                 {{"at", {{"type", "integer"}, {"minimum", 1}}},
                  {"weights", {{"type", "array"}, {"items", limited({{"type", "number"}}, field)}}}}},
                {"required", Json::array({"at", "weights"})},
                {"additionalProperties", false}}}};
    case FieldType::kClassWeights:
      return {{"anyOf",
               {{{"const", "balanced"}},
                {{"type", "object"}, {"additionalProperties", limited({{"type", "number"}}, field)}}}}};
    case FieldType::kPair:
      return {{"type", "array"},
              {"items", limited({{"type", "number"}}, field)},
              {"minItems", 2},
              {"maxItems", 2}};
    case FieldType::kSpan:
      return {{"anyOf",
               {{{"type", "integer"}, {"minimum", 0}},
                {{"type", "string"}, {"pattern", "^[0-9.eE+-]+ *(%|steps|samples)$"}}}}};
    case FieldType::kChoice: return {{"enum", choices_of(field)}};
    case FieldType::kBytes:
      return {{"anyOf",
               {{{"type", "integer"}, {"minimum", field.least()}},
                {{"type", "string"}, {"pattern", "^[0-9.]+ *([KMGT]iB|[kMGT]B)$"}}}}};
  }
  return {};
}

Json schema_of(const Field& field) {
  Json schema = type_of(field);
  if (field.has_auto()) schema = {{"anyOf", {schema, {{"const", "auto"}}}}};
  schema["description"] = field.doc();
  return schema;
}

// The object schema of a section, made as far as it is not there.
Json& section(Json& root, std::string_view path) {
  Json* at = &root;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    std::string name(path.substr(0, dot));
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
    const bool list = name.ends_with("[]");
    if (list) name.resize(name.size() - 2);
    Json& property = (*at)["properties"][name];
    if (list) {
      property["type"] = "array";
      property["maxItems"] = 4;
    }
    at = list ? &property["items"] : &property;
    if (!at->contains("type"))
      *at = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  }
  return *at;
}

void add_field(Json& root, const Field& field) {
  const size_t dot = field.path().rfind('.');
  const bool top = dot == std::string_view::npos;
  Json& parent = section(root, top ? "" : field.path().substr(0, dot));
  const std::string name(top ? field.path() : field.path().substr(dot + 1));
  parent["properties"][name] = schema_of(field);
}

// Other tools' keys, so that an editor does not mark what the parser understands.
void add_aliases(Json& root) {
  for (const Alias& alias : job_aliases()) {
    const std::string name(alias.name.substr(0, alias.name.find('.')));
    if (root["properties"].contains(name)) continue;
    root["properties"][name] = {
        {"description",
         alias.name.find('.') != std::string_view::npos ? std::string("section of ") + std::string(alias.tool)
         : alias.target.empty() ? std::string("of ") + std::string(alias.tool) + "; has no effect here"
                                : "same as " + std::string(alias.target)}};
  }
}

}  // namespace

std::string job_schema() {
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "Lockstep job file"},
               {"type", "object"},
               {"properties", Json::object()},
               {"additionalProperties", false}};
  for (const Field& field : job_fields()) add_field(root, field);
  for (const Field& field : job_fields())
    if (const std::string_view path = field.path().substr(0, field.path().rfind('.'));
        !key_of_plain_value(path).empty())
      section(root, path)["type"] = {"object", "string"};
  for (auto& [name, property] : root["properties"].items())
    if (const std::string_view doc = section_doc(name); !doc.empty()) property["description"] = doc;
  root["properties"]["jobSpec"] = {{"type", "object"},
                                   {"description", "Vertex AI's wrapper around workerPoolSpecs"}};
  add_aliases(root);
  return root.dump(2) + "\n";
}

}  // namespace lockstep
