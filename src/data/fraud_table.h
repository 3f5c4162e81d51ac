// Generated card transactions in the columnar formats that data/format/table_writer.h writes: text as text,
// whole numbers as i64, amounts as the f64 nearest to their cents, which is what the other formats are read
// as.
#pragma once
#include "data/fraud_writer.h"

namespace lockstep {

std::unique_ptr<FraudWriter> make_fraud_table_writer(std::string_view format);

}  // namespace lockstep
