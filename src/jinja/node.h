// JinjaNode: a template as a tree, which parser.cc makes and render.cc walks.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "jinja/value.h"

namespace lockstep {

enum class JinjaKind : uint8_t {
  // Statements.
  kBlock,       // children one after the other
  kText,        // text
  kPrint,       // children[0]
  kIf,          // pairs of condition and block; an odd last child is the else
  kFor,         // text: names joined by ','; children: list, condition or null, body, else or null
  kSet,         // text: names joined by ','; children[0]
  kSetMember,   // text: "namespace.member"; children[0]
  kSetBlock,    // text: name; children[0] is what is printed into it
  kMacro,       // text: name; names: parameters; children: body, then the defaults of the last parameters
  kGeneration,  // children[0], which a model is to generate
  kBreak,
  kContinue,
  // Expressions.
  kLiteral,  // value
  kName,     // text
  kList,     // children
  kDict,     // children: keys and values in turn
  kMember,   // children[0].text
  kIndex,    // children[0][children[1]]
  kSlice,    // children: of what, from, to, step; null where left out
  kCall,     // children: what is called, then arguments; names: of the last of them, which are named
  kFilter,   // text: name; children: of what, then arguments; names as kCall
  kTest,     // likewise; negated: is not
  kNot,
  kNegative,
  kAnd,
  kOr,
  kChoice,   // children: value, condition, otherwise or null
  kBinary,   // text: the operator
  kCompare,  // children: operands; names: an operator between each two
};

struct JinjaNode {
  JinjaKind kind = JinjaKind::kBlock;
  int line = 1;
  int height = 1;  // of what it holds; chains as a.b.c are bounded by it
  bool negated = false;
  std::string text = {};
  JinjaValue value = {};
  std::vector<std::string> names = {};
  std::vector<std::unique_ptr<JinjaNode>> children = {};
};

}  // namespace lockstep
