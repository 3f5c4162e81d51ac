// What editors and people read about job files, made from the table that the parser uses.
#pragma once
#include <string>

namespace lockstep {

// JSON Schema, draft 2020-12.
std::string job_schema();
// docs/job-file.md.
std::string job_reference();

}  // namespace lockstep
