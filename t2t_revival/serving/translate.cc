// Translates lines with an exported model, without Python.
//
//   translate TEXT_OPS_LIBRARY SAVED_MODEL_DIR < lines > translations
//
// TEXT_OPS_LIBRARY is python/ops/_sentencepiece_tokenizer.so in the folder of
// the installed tensorflow_text, or _wordpiece_tokenizer.so there for a model
// that was imported from tensor2tensor; with a comma and _normalize_ops.so for
// one that was exported with --normalize. SAVED_MODEL_DIR is the folder of a
// version that t2t-exporter wrote. For each line of the standard input, UTF-8,
// the best translation is written to the standard output. TF_CPP_MIN_LOG_LEVEL=3 in the
// environment suppresses most of TensorFlow's own messages.
//
// To build, with the TensorFlow that `python` has:
//
//   tf() { python -c "import tensorflow as tf; print($1)"; }
//   flags=$(tf "*tf.sysconfig.get_compile_flags()")
//   lib=$(tf "tf.sysconfig.get_lib()")
//   libraries="-l:libtensorflow_cc.so.2 -l:libtensorflow_framework.so.2"
//   link="-L$lib $libraries -Wl,-rpath,$lib"
//   g++ $flags -std=c++20 -O1 translate.cc -o translate $link

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

namespace {

constexpr std::size_t kBatch = 32;  // Lines that are translated together.
constexpr char kTag[] = "serve";
constexpr char kSignature[] = "serving_default";

// A loaded model, and the names of the signature's tensors in the graph.
struct Translator {
  tensorflow::SavedModelBundleLite model;
  std::string inputs;
  std::string outputs;
};

// Registers the ops of TensorFlow Text that the graph has.
absl::Status LoadTextOps(const std::string& library) {
  const std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(
      TF_NewStatus(), TF_DeleteStatus);
  // The loader searches the system's folders for a name without a folder.
  const std::string path = std::filesystem::absolute(library).string();
  TF_DeleteLibraryHandle(TF_LoadLibrary(path.c_str(), status.get()));
  if (TF_GetCode(status.get()) == TF_OK) return absl::OkStatus();
  return absl::NotFoundError(TF_Message(status.get()));
}

absl::Status LoadModel(const std::string& folder, Translator* translator) {
  if (!tensorflow::MaybeSavedModelDirectory(folder)) {
    return absl::NotFoundError(absl::StrCat(
        folder, ": no saved_model.pb there; give the folder of a version"));
  }
  const absl::Status status = tensorflow::LoadSavedModel(
      {}, {}, folder, {kTag}, &translator->model);
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat(folder, ": ", status.message()));
  }
  const auto& signatures = translator->model.GetSignatures();
  const auto found = signatures.find(kSignature);
  if (found == signatures.end() || !found->second.inputs().contains("inputs") ||
      !found->second.outputs().contains("outputs")) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": not a model that t2t-exporter wrote"));
  }
  translator->inputs = found->second.inputs().at("inputs").name();
  translator->outputs = found->second.outputs().at("outputs").name();
  return absl::OkStatus();
}

std::vector<std::string> ReadBatch(std::istream& input) {
  std::vector<std::string> lines;
  std::string line;
  while (lines.size() < kBatch && std::getline(input, line)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

absl::Status TranslateBatch(const Translator& translator,
                            const std::vector<std::string>& lines) {
  const auto batch = static_cast<std::int64_t>(lines.size());
  tensorflow::Tensor inputs(tensorflow::DT_STRING, {batch});
  for (std::int64_t row = 0; row < batch; ++row) {
    inputs.vec<tensorflow::tstring>()(row) = lines[row];
  }
  std::vector<tensorflow::Tensor> found;
  const absl::Status status = translator.model.GetSession()->Run(
      {{translator.inputs, inputs}}, {translator.outputs}, {}, &found);
  if (!status.ok()) return status;

  const auto outputs = found[0].matrix<tensorflow::tstring>();  // Best first.
  for (std::int64_t row = 0; row < batch; ++row) {
    std::cout << std::string_view(outputs(row, 0)) << '\n';
  }
  if (!std::cout.flush()) {
    return absl::UnavailableError("cannot write the translations");
  }
  return absl::OkStatus();
}

absl::Status Translate(const std::string& libraries, const std::string& folder) {
  for (const absl::string_view library : absl::StrSplit(libraries, ',')) {
    const absl::Status loaded = LoadTextOps(std::string(library));
    if (!loaded.ok()) return loaded;
  }
  Translator translator;
  absl::Status status = LoadModel(folder, &translator);
  while (status.ok()) {
    const std::vector<std::string> lines = ReadBatch(std::cin);
    if (lines.empty()) return absl::OkStatus();
    status = TranslateBatch(translator, lines);
  }
  return status;
}

int Fail(std::string_view message) {
  const std::string_view line = message.substr(0, message.find('\n'));
  std::cerr << "translate: error: " << line << '\n';
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char* argv[]) {
  if (argc != 3) {
    return Fail("usage: translate TEXT_OPS_LIBRARY SAVED_MODEL_DIR");
  }
  const absl::Status status = Translate(argv[1], argv[2]);
  return status.ok() ? EXIT_SUCCESS : Fail(status.message());
}
