#include "fuzz/checkpoint.h"

#include "base/error.h"
#include "run/run_state.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/checkpoint/manifest.h"

namespace lockstep::testing {

bool check_manifest(std::string_view text) {
  CheckpointManifest manifest;
  try {
    manifest = parse_manifest(text, "manifest.json");
  } catch (const UserError&) {
    return false;
  }
  for (const FileRecord& file : manifest.files) {
    LOCKSTEP_CHECK(file.name.find('/') == std::string::npos && !file.name.starts_with('.'),
                   "{} leads out of the folder", file.name);
    for (const TensorRecord& tensor : file.tensors)
      LOCKSTEP_CHECK(tensor.begin >= 0 && tensor.begin <= tensor.end && tensor.end <= file.bytes,
                     "{} lies at {} to {}", tensor.name, tensor.begin, tensor.end);
  }
  const std::string written = manifest_text(manifest.step, manifest.files);
  const CheckpointManifest again = parse_manifest(written, "again");
  LOCKSTEP_CHECK(manifest_text(again.step, again.files) == written, "differs when it is read again");
  return true;
}

bool check_saved_state(std::string_view text) {
  SavedState saved;
  try {
    saved = parse_saved_state(text, "state.json");
  } catch (const UserError&) {
    return false;
  }
  const Identity again = identity_from_json(to_json(saved.identity));
  LOCKSTEP_CHECK(again.sha256() == saved.identity.sha256(), "the identity differs when it is read again");
  LOCKSTEP_CHECK(diff(again, saved.identity).empty(), "{}", diff(again, saved.identity));
  try {
    const nlohmann::json written = to_json(run_state_of(saved.state), steps_applied_of(saved.state));
    LOCKSTEP_CHECK(to_json(run_state_of(written), steps_applied_of(written)) == written, "{}",
                   written.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } catch (const nlohmann::json::exception&) {
    return false;  // is refused with its message where it is used
  }
  return true;
}

}  // namespace lockstep::testing
