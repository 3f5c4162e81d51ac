#include "job/fields.h"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

std::vector<Field> make_table() {
  std::vector<Field> all = {
      LOCKSTEP_FIELD(name, "the job's name").or_else("the file's name without its ending").example("fraud")};
  for (auto* part : {model_fields, data_fields, corpus_fields, mask_fields, image_fields, batch_fields,
                     optimizer_fields, lr_fields, precision_fields, guard_fields, evaluation_fields,
                     start_fields, lora_fields, strategy_fields, pool_fields, vertex_fields, output_fields})
    for (Field& field : part()) all.push_back(std::move(field));
  return all;
}

constexpr auto kSectionDocs = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"model", "What is trained: a family with its sizes, or the model of a Hugging Face folder."},
    {"data", "What it is trained on, and what it is judged by."},
    {"train", "How: batch, optimizer, learning rate, precision, guard. Everything here shapes the result."},
    {"strategy",
     "How the work is laid out. Of these only leaves, tensor_leaves, reduce.order, reduce.compress and mode "
     "can "
     "change a bit of the result."},
    {"workerPoolSpecs",
     "The machines, as in a Vertex AI CustomJob: at the top or under jobSpec, in camelCase or snake_case."},
    {"checkpoint", "What is kept to go on from."},
});

}  // namespace

const std::vector<Field>& job_fields() {
  static const std::vector<Field> table = make_table();
  return table;
}

const Field* find_field(std::string_view path) {
  for (const Field& field : job_fields())
    if (field.path() == path) return &field;
  return nullptr;
}

bool is_section(std::string_view path) {
  return std::any_of(job_fields().begin(), job_fields().end(), [&](const Field& field) {
    return field.path().size() > path.size() && field.path().starts_with(path) &&
           (field.path()[path.size()] == '.' || field.path()[path.size()] == '[');
  });
}

std::vector<std::string_view> names_in(std::string_view section) {
  std::vector<std::string_view> names;
  for (const Field& field : job_fields()) {
    std::string_view rest = field.path();
    if (!section.empty()) {
      if (!rest.starts_with(section) || rest.size() <= section.size() || rest[section.size()] != '.')
        continue;
      rest.remove_prefix(section.size() + 1);
    }
    rest = rest.substr(0, rest.find_first_of(".["));
    if (std::find(names.begin(), names.end(), rest) == names.end()) names.push_back(rest);
  }
  return names;
}

std::string_view key_of_plain_value(std::string_view section) {
  return section == "train.init_from" ? "run" : "";
}

std::string_view section_doc(std::string_view path) {
  for (const auto& [section, doc] : kSectionDocs)
    if (section == path) return doc;
  return {};
}

}  // namespace lockstep
