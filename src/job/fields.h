// The one table of everything a job file can say, and the names that other tools use for the same things.
//
// The parser (parse.h), the JSON Schema and the reference page (schema.h, reference.h) and the effective job
// (print.h) are all driven by it, so that they cannot disagree.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "job/field.h"

namespace lockstep {

// What stands for model.family where model.hf names a folder, in the cases of fields.
inline constexpr std::string_view kOfFolder = "hf";

// In the order of the reference page; a field's selector stands before it.
const std::vector<Field>& job_fields();
const Field* find_field(std::string_view path);
// Is there a field below this path?
bool is_section(std::string_view path);
// The names directly below a section ("" for the top), without repeats.
std::vector<std::string_view> names_in(std::string_view section);
// Which key of a section a plain value in its place stands for; empty: it must be a map.
std::string_view key_of_plain_value(std::string_view section);
// What the section is for, one line; empty for one that needs no words.
std::string_view section_doc(std::string_view path);

// The parts of the table.
std::vector<Field> model_fields();
std::vector<Field> data_fields();
std::vector<Field> corpus_fields();
std::vector<Field> mask_fields();
std::vector<Field> image_fields();
std::vector<Field> batch_fields();
std::vector<Field> optimizer_fields();
std::vector<Field> lr_fields();
std::vector<Field> precision_fields();
std::vector<Field> guard_fields();
std::vector<Field> evaluation_fields();
std::vector<Field> start_fields();
std::vector<Field> lora_fields();
std::vector<Field> strategy_fields();
std::vector<Field> pool_fields();
std::vector<Field> vertex_fields();
std::vector<Field> output_fields();

}  // namespace lockstep
