// The identity of a run: everything that may change the bits of its result, as named text values: contract
// version, architecture, model, element types, seed, data, microbatch shape, microbatches and leaves per
// step, optimizer and its constants, tensor-parallel degree. Two runs of one identity give the same weights;
// what is not in it (workers, threads, sharding, schedule, transport) must not change a bit. Who finds two
// identities where one is needed refuses with diff().
#pragma once
#include <concepts>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class Identity {
 public:
  struct Field {
    std::string name;
    std::string value;
    bool operator==(const Field&) const = default;
  };

  // A name can be given once. Names are those of the job file where there is one: "train.seed".
  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, const char* value) { add(name, std::string_view(value)); }
  void add(std::string_view name, std::integral auto value) {
    add(name, std::string_view(std::to_string(value)));
  }
  void add(std::string_view name, bool value) { add(name, value ? "true" : "false"); }
  // The shortest decimal text that reads back as the same double.
  void add(std::string_view name, double value);

  const std::vector<Field>& fields() const { return fields_; }
  // Null: it has no such field.
  const std::string* find(std::string_view name) const;
  void remove(std::string_view name);
  // Independent of the order of the fields: equal exactly if diff() is empty.
  std::string sha256() const;

 private:
  std::vector<Field> fields_;
};

// One line per field that differs, in the order of `job`: "train.seed: checkpoint 7, job 8".
std::string diff(const Identity& checkpoint, const Identity& job);

// A list of [name, value], in order.
nlohmann::json to_json(const Identity& identity);
// Throws an exception of the JSON library where the list is not one, UserError where it has a name twice.
Identity identity_from_json(const nlohmann::json& list);

}  // namespace lockstep
