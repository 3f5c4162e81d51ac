// JinjaTemplate: a chat template in the part of Jinja that such templates use, rendered as the sandboxed
// engine of Python does with trim_blocks and lstrip_blocks.
//
// There are for (with if and else), if, set (also of namespaces and of blocks), macro, generation, raw, break
// and continue; filters, tests and methods are listed in filters.h. What is not there (import, include,
// extends, call, another filter) is refused when the template is read. A template cannot loop for ever or
// fill the memory: steps and output are bounded.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace lockstep {

struct JinjaNode;

struct JinjaOutput {
  std::string text;
  // What stood between generation and endgeneration, as bytes [first, second) of the text.
  std::vector<std::pair<size_t, size_t>> generated;
};

class JinjaTemplate {
 public:
  // `name` is what errors call it. Throws UserError that names line and construct.
  JinjaTemplate(std::string name, std::string_view source);
  ~JinjaTemplate();
  JinjaTemplate(JinjaTemplate&&) noexcept;
  JinjaTemplate& operator=(JinjaTemplate&&) noexcept;

  // Throws UserError for what goes wrong, and with what the template says by raise_exception. May be called
  // by several threads at a time.
  JinjaOutput render(const JinjaDict& variables) const;
  // Whether it says itself what a model generates.
  bool has_generation() const { return has_generation_; }

 private:
  std::string name_;
  std::unique_ptr<JinjaNode> root_;
  bool has_generation_ = false;
};

}  // namespace lockstep
