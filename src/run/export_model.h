// lockstep export: a trained model as files that other programs read (docs/export.md).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "onnx/onnx_model.h"
#include "prepare/trained_model.h"

namespace lockstep {

enum class ExportFormat : uint8_t { kSafetensors, kOnnx };

struct ExportOptions {
  ExportFormat to = ExportFormat::kOnnx;
  std::string out;  // the file; empty: the job's name with the format's ending, in the working folder
  bool overwrite = false;
  // Rows of drawn inputs with the answers to them, in a file beside the model; 0: none.
  int64_t sample = 0;
  // Beyond this the weights of an ONNX model are a file of their own.
  int64_t inline_limit = kOnnxInlineLimit;
};

struct ExportedFile {
  std::string path;
  std::string what;
  int64_t bytes = 0;
};

struct ExportReport {
  std::vector<ExportedFile> files;
  std::vector<OnnxPort> inputs, outputs;
};

// Throws UserError for a file that is there already, and for a model that the format cannot hold. All files
// appear together, or none.
ExportReport export_model(const TrainedModel& model, const ExportOptions& options);

}  // namespace lockstep
