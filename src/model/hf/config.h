// HfConfig: the config.json of a Hugging Face folder, as values that remember which keys were read.
//
// A family reads every key that its mathematics depends on; refuse_unread() then throws for each key that is
// neither read nor known to change nothing. So a model that this program would compute differently is refused
// by the name of the key, never approximated. Errors name the file, the key, its value and what would do.
//
// Copies share what has been read. A key whose value is null counts as absent.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class HfConfig {
 public:
  // A folder's config.json, or the file itself.
  static HfConfig read(const std::string& path);
  // `where` names the text in errors. Throws UserError for what is not a JSON object, and for a key that
  // stands twice.
  static HfConfig parse(std::string_view text, const std::string& where);

  const std::string& where() const;
  // Whether the key is there and not null; does not count as reading it.
  bool has(std::string_view key) const;

  // Whether the key is there at all; for the few of which null means something else than being absent.
  bool contains(std::string_view key) const;

  // Without an alternative the key must be there. Reading counts even where the key is absent.
  int64_t integer(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t otherwise) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  std::optional<int64_t> maybe_integer(std::string_view key) const;
  std::optional<double> maybe_number(std::string_view key) const;
  std::optional<std::string> maybe_text(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  // An object of texts, such as id2label; empty where absent.
  std::map<std::string, std::string> text_map(std::string_view key) const;
  // An object inside this one, whose own keys must then be read too; none where absent.
  std::optional<HfConfig> object(std::string_view key) const;

  // integer() of at least `least`, and at most what counts tokens, rows and elements of any model.
  int64_t size(std::string_view key, int64_t least = 1) const;
  int64_t size(std::string_view key, int64_t otherwise, int64_t least) const;

  // number() in [0, 1).
  double probability(std::string_view key, double otherwise) const;

  // Reads a key of which only one value is implemented: `allowed`, as JSON text. Absent is as good.
  void require(std::string_view key, std::string_view allowed, std::string_view because) const;
  // Reads a key that changes nothing here.
  void ignore(std::initializer_list<std::string_view> keys) const;

  // Throws UserError "<file>: <key> is <value>: <problem>".
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;
  // See above. On an object inside another one: that object's keys alone; the list of harmless ones holds for
  // text_config, the others have none.
  void refuse_unread() const;

 private:
  struct Document;
  HfConfig(std::shared_ptr<Document> document, std::string prefix);
  std::shared_ptr<Document> document_;
  std::string prefix_;  // of this object's keys, in errors: "rope_scaling."
};

}  // namespace lockstep
