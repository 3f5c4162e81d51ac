// TFRecord files of tf.train.Example records. A feature is a column: lists of one length are columns of that
// width, others vary. Both crcs of a record are checked when it is decoded, the crc of its length also when
// it is indexed.
//
// Where bad records are skipped, a damaged length loses the records up to the next header that holds.
// Settings: longest_record (bytes; 16777216 unless given).
#pragma once
#include <memory>
#include <string_view>

#include "data/format/format.h"
#include "data/format/table_writer.h"
#include "data/records/record_sink.h"

namespace lockstep {

std::unique_ptr<Format> make_tfrecord_format(const FormatOptions& options);

// Writes records as a TFRecord file of tf.train.Example messages, which tfrecord_format.h and TensorFlow
// read.
//
// Whole numbers become int64 features, f32 float features, text bytes features. The format has no doubles:
// they become text, exactly, which tfrecord_format.h reads as numbers where these are wanted. What is missing
// is a feature without values; a list without values is one with an empty list. Numbers are at most 1e30.
std::unique_ptr<TableWriter> make_tfrecord_writer(const std::vector<BlockField>& fields,
                                                  const TableWriterOptions& options);

// tf.train.Example in the wire encoding of protocol buffers: named lists of bytes, floats or int64 values.
//
// Reads what any writer of the message may give: fields in any order, packed and unpacked lists, unknown
// fields. Throws RecordProblem for bytes that are no Example.

// Appends the wanted features of an Example to the sink, as one record.
void read_example(std::string_view message, RecordSink& sink);
// Notes which features it has.
void survey_example(std::string_view message, FieldSurvey& survey);

}  // namespace lockstep
