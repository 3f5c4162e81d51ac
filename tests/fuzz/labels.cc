#include "fuzz/labels.h"

#include <limits>

#include "base/error.h"
#include "data/transform/label_encoding.h"

namespace lockstep::testing {

bool check_labels(std::string_view text) {
  LabelEncoding labels;
  try {
    labels = labels_from_json(text, "labels.json");
  } catch (const UserError&) {
    return false;
  }
  LOCKSTEP_CHECK(labels_from_json(labels.json(), "again") == labels, "differs when it is read again");
  std::vector<std::string> texts = labels.names();
  texts.insert(texts.end(), {"", "0", "true", "-1.5", "1e31", "inf", "text"});
  BlockColumn column = make_column({labels.column, ValueType::kBytes, 1});
  column.as<std::string_view>().assign(texts.begin(), texts.end());
  const std::vector<uint8_t> usable = usable_labels(labels, column, texts.size());
  for (size_t i = 0; i < labels.names().size(); ++i)
    LOCKSTEP_CHECK(usable[i] != 0 || labels.kind == LabelKind::kTexts, "label {} cannot be used", texts[i]);
  for (size_t i = 0; i < texts.size(); ++i)
    if (usable[i] == 0) (void)label_problem(labels, column, i);
  const BlockColumn numbers{labels.column, 1,
                            std::vector<double>{0, 1, 0.5, std::numeric_limits<double>::quiet_NaN()}};
  (void)usable_labels(labels, numbers, 4);
  return true;
}

}  // namespace lockstep::testing
