// Reads attribute values from text: numbers, flags, dtypes, quoted texts and lists.
#pragma once
#include "graph/attributes.h"
#include "graph/lexer.h"

namespace lockstep {

// All of these throw UserError with "file:line:column: what is wrong".
int64_t parse_integer(const Lexer& lexer, const Token& token);
Attribute parse_number(const Lexer& lexer, const Token& token);  // an int64_t or a double
Attribute parse_attribute(Lexer& lexer);
// The list after an opening "{", up to and with its "}".
Attributes parse_attributes(Lexer& lexer);

}  // namespace lockstep
