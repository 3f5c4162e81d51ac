// TFRecord files of tf.train.Example records. A feature is a column: lists of one length are columns of that
// width, others vary. Both crcs of a record are checked when it is decoded, the crc of its length also when
// it is indexed.
//
// Where bad records are skipped, a damaged length loses the records up to the next header that holds.
// Settings: longest_record (bytes; 16777216 unless given).
#pragma once
#include <memory>

#include "data/format/format.h"

namespace lockstep {

std::unique_ptr<Format> make_tfrecord_format(const FormatOptions& options);

}  // namespace lockstep
