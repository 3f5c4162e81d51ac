// The reference page: a table of keys per section, then how values are written and other tools' names.
#include <fmt/format.h>

#include <algorithm>

#include "job/aliases.h"
#include "job/fields.h"
#include "job/schema.h"

namespace lockstep {
namespace {

constexpr std::string_view kOpening = R"(# The job file

<!-- Printed by `lockstep schema --markdown` from the table that the parser uses; a test keeps the two equal. -->

A job is one YAML file. A key that is not on this page is an error that names the line and the nearest known key.
`lockstep init --template gpt` prints one to start from, `lockstep check job.yaml` shows every value that holds and where
it came from, `lockstep schema` prints a JSON Schema for editors.

Any key can be set on the command line: `--set train.lr.base=1e-3 --set model.top=[64,32]`; later ones win, and `--set key=`
goes back to the default, `--set section=` with all keys of a section. `train.steps` and `train.epochs` on the command line
replace each other's value in the file.

## How values are written

| kind | written as |
|---|---|
| whole number | `2000`, `1e6` |
| number | `0.1`, `1e-3`; always finite |
| length of training | `200` or `200 steps`, `5%` of the run, `10000 samples` (rounded up to whole steps) |
| bytes | `512MiB`, `16GiB` (powers of 1024), `2GB` (powers of 1000) |
| list | `[512, 256]` |
| path | `runs/fraud`; `~` is the home folder, `$NAME` and `${NAME}` environment variables, `$$` a dollar sign |

A file holds at most 1 MiB, 32 levels of nesting and 50 000 values (aliases `*name` count as what they repeat). Tags,
merge keys (`<<`), tabs as indentation, several documents and the same key twice are refused.
)";

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string kind(const Field& field) {
  std::string text;
  switch (field.type()) {
    case FieldType::kAny: return "anything";
    case FieldType::kInt: text = "whole number"; break;
    case FieldType::kNumber: text = "number"; break;
    case FieldType::kFlag: return "`true` or `false`";
    case FieldType::kText: return field.is_path() ? "path" : "text";
    case FieldType::kTexts: return field.is_path() ? "path or list of paths" : "text or list of texts";
    case FieldType::kInts: text = "list of whole numbers"; break;
    case FieldType::kNumbers: text = "list of numbers"; break;
    case FieldType::kTransforms: text = "list of maps"; break;
    case FieldType::kWeightChanges: text = "list of maps with `at` and `weights`"; break;
    case FieldType::kClassWeights: text = "`balanced`, or a map from labels to numbers"; break;
    case FieldType::kPair: text = "two numbers"; break;
    case FieldType::kSpan: return "length of training";
    case FieldType::kChoice: return fmt::format("`{}`", fmt::join(field.choices(), "`, `"));
    case FieldType::kBytes: text = "bytes"; break;
  }
  if (!field.range().empty() && field.type() != FieldType::kBytes) text += ", " + field.range();
  return field.has_auto() ? text + ", or `auto`" : text;
}

std::string fallback(const Field& field) {
  if (field.is_required()) return "required";
  if (!field.selector().empty()) {
    std::string text;
    for (const auto& [value, own] : field.cases())
      text += fmt::format("{}{}{}", text.empty() ? "" : "; ", value,
                          own.empty() ? "" : fmt::format(": `{}`", own));
    return field.absent().empty() ? text : fmt::format("{} ({} only)", field.absent(), text);
  }
  if (!field.fallback().empty()) return fmt::format("`{}`", field.fallback());
  return std::string(field.absent());
}

std::string top_of(const Field& field) {
  return std::string(field.path().substr(0, field.path().find_first_of(".[")));
}

std::string section_text(const std::string& section) {
  std::string out = fmt::format("\n## {}\n\n", section);
  if (const std::string_view doc = section_doc(section); !doc.empty()) out += fmt::format("{}\n\n", doc);
  out += "| key | value | default | meaning |\n|---|---|---|---|\n";
  std::vector<std::string_view> ignored;
  for (const Field& field : job_fields()) {
    if (top_of(field) != section) continue;
    if (field.is_ignored())
      ignored.push_back(field.path());
    else
      out += fmt::format("| `{}` | {} | {} | {} |\n", field.path(), cell(kind(field)), cell(fallback(field)),
                         cell(field.doc()));
  }
  if (!ignored.empty())
    out += fmt::format("\nRead and passed over with a note: `{}`.\n", fmt::join(ignored, "`, `"));
  return out;
}

std::string aliases_text() {
  std::string out =
      "\n## Other tools' names\n\n"
      "These are understood at the top of the file or under `train`, and reported by `lockstep check`. The "
      "batch that the\n"
      "optimizer sees is the per-device batch x `gradient_accumulation_steps` x `strategy.workers` (1 if "
      "`auto`).\n\n"
      "| name | of | is here |\n|---|---|---|\n";
  for (const Alias& alias : job_aliases()) {
    const bool part = !alias.target.empty() && find_field(alias.target) == nullptr;
    const std::string target = alias.target.empty()            ? "no effect"
                               : alias.target == kAccumulation ? "a factor of `train.global_batch`"
                               : part                          ? "a part of `train.optimizer.betas`"
                                                               : fmt::format("`{}`", alias.target);
    out += fmt::format("| `{}` | {} | {} |\n", alias.name, alias.tool, target);
  }
  return out;
}

}  // namespace

std::string job_reference() {
  std::string out(kOpening);
  std::vector<std::string> sections;
  std::vector<std::string_view> vertex;
  for (const Field& field : job_fields()) {
    const std::string top = top_of(field);
    if (field.is_ignored() && top == field.path()) {
      vertex.push_back(field.path());
      continue;
    }
    if (std::find(sections.begin(), sections.end(), top) == sections.end()) sections.push_back(top);
  }
  for (const std::string& section : sections) out += section_text(section);
  out += fmt::format(
      "\n## Beside workerPoolSpecs\n\nOf a Vertex AI CustomJob, read and passed over with a note: `{}`.\n",
      fmt::join(vertex, "`, `"));
  return out + aliases_text();
}

}  // namespace lockstep
