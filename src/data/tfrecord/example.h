// tf.train.Example in the wire encoding of protocol buffers: named lists of bytes, floats or int64 values.
//
// Reads what any writer of the message may give: fields in any order, packed and unpacked lists, unknown
// fields. Throws RecordProblem for bytes that are no Example.
#pragma once
#include <string_view>

#include "data/records/field_survey.h"
#include "data/records/record_sink.h"

namespace lockstep {

// Appends the wanted features of an Example to the sink, as one record.
void read_example(std::string_view message, RecordSink& sink);
// Notes which features it has.
void survey_example(std::string_view message, FieldSurvey& survey);

}  // namespace lockstep
