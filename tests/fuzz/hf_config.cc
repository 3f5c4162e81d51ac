#include "fuzz/hf_config.h"

#include "base/error.h"
#include "model/hf/family.h"

namespace lockstep::testing {

bool check_hf_config(std::string_view text) {
  std::unique_ptr<HfModel> model;
  try {
    model = make_hf_model(HfConfig::parse(text, "config.json"));
  } catch (const UserError&) {
    return false;
  }
  LOCKSTEP_CHECK(model->vocab >= 0 && model->vocab <= INT32_MAX, "a vocabulary of {}", model->vocab);
  LOCKSTEP_CHECK(model->classes >= 0, "{} classes", model->classes);
  LOCKSTEP_CHECK(
      !model->padding_token || (*model->padding_token >= 0 && *model->padding_token < model->vocab),
      "padding outside of the vocabulary");
  return true;
}

}  // namespace lockstep::testing
