// Records as JSON and back.
//
// Doubles are the shortest decimal text that reads back as the same bits, always with a point or an exponent.
// JSON has no word for what is not finite: it is written as the string "nan", "inf" or "-inf". A score that
// an evaluation does not have is left out, and so is an empty `action`, `note`, final or best evaluation.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "observe/records.h"

namespace lockstep {

// One line without a newline. The text of a step begins {"kind":"step","step":1, and that of an evaluation
// {"kind":"eval","step":1,
std::string to_json_line(const StepRecord& record);
std::string to_json_line(const EvalRecord& record);
// Indented, with a newline at the end.
std::string to_json_text(const RunSummary& summary);

// Fields that are not known are passed over: later versions may write more. Throws UserError that begins with
// `place` when one is missing or of another type.
StepRecord step_from_json(const nlohmann::json& object, const std::string& place);
EvalRecord eval_from_json(const nlohmann::json& object, const std::string& place);
RunSummary summary_from_json(const nlohmann::json& object, const std::string& place);

}  // namespace lockstep
