// Writes records as a TFRecord file of tf.train.Example messages, which tfrecord_format.h and TensorFlow
// read.
//
// Whole numbers become int64 features, f32 float features, text bytes features. The format has no doubles:
// they become text, exactly, which tfrecord_format.h reads as numbers where these are wanted. What is missing
// is a feature without values; a list without values is one with an empty list. Numbers are at most 1e30.
#pragma once
#include "data/format/table_writer.h"

namespace lockstep {

std::unique_ptr<TableWriter> make_tfrecord_writer(const std::vector<BlockField>& fields,
                                                  const TableWriterOptions& options);

}  // namespace lockstep
