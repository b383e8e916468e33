#include "formats/convert.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "formats/artifact_writer.h"
#include "formats/column_weights.h"
#include "formats/convert_plan.h"
#include "formats/manifest.h"
#include "formats/safetensors_writer.h"
#include "formats/side_files.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

/// Tells this conversion from others that would write to the same place: the source's files and the choices.
std::string conversion_key(const ModelSource& source, const ConvertOptions& options, const Json& header) {
  Json files = Json::array();
  for (const MappedFile& file : source.files()) {
    std::error_code ignored;
    const auto time = fs::last_write_time(file.path(), ignored).time_since_epoch().count();
    files.push_back({fs::absolute(file.path()).string(), file.size(), std::to_string(time)});
  }
  return Json{{"files", files},
              {"format", to_string(options.format)},
              {"mix", to_string(options.mix)},
              {"header", header.is_null() ? "" : canonical_digest(header)}}
      .dump();
}

class Conversion {
 public:
  Conversion(const ModelSource& source, const ConvertOptions& options, ThreadPool& pool, Progress* progress)
      : source_(source), options_(options), pool_(pool), progress_(progress) {
    plan_ = plan_conversion(source, options, report_.left_out);
  }

  ConvertReport run() {
    report_.output = options_.output;
    open_output();
    std::uint64_t done = 0;
    for (const PlannedTensor& tensor : plan_) {
      const std::size_t index = report_.tensors.size();
      if (index < report_.resumed) {
        take_over(tensor, staged().written()[index].note);
      } else {
        convert_tensor(tensor);
      }
      done += tensor.output.bytes;
      if (progress_) progress_->update(done);
    }
    finish();
    return std::move(report_);
  }

 private:
  [[nodiscard]] StagedWriter& staged() { return artifact_ ? artifact_->staged() : *staged_; }

  void open_output() {
    if (options_.format == OutputFormat::artifact) {
      open_artifact();
    } else {
      const std::string key = conversion_key(source_, options_, nullptr);
      staged_ = std::make_unique<StagedWriter>(options_.output, file_layout(), key);
    }
    report_.resumed = staged().written().size();
  }

  void open_artifact() {
    if (!options_.make_header) fail(ErrorCode::internal, "an artifact needs the manifest's header");
    const ModelSource planned = source_.with_tensors(outputs_of(plan_));
    ArtifactContent content;
    content.header = options_.make_header(planned);
    // A GGUF model stays one: what its steps do not read, such as rope_freqs.weight, its keys may need.
    if (!source_.gguf())
      for (std::string& name : keep_listed(plan_, content.header)) report_.left_out.push_back(std::move(name));
    content.tensors = outputs_of(plan_);
    content.files = artifact_files(source_);
    content.shard_bytes = options_.shard_bytes;
    const std::string key = conversion_key(source_, options_, content.header);
    artifact_ = std::make_unique<ArtifactWriter>(options_.output, std::move(content), key);
  }

  OutputLayout file_layout() {
    if (options_.format == OutputFormat::safetensors) {
      files_ = huggingface_files(source_, options_.mix);
      return layout_safetensors(outputs_of(plan_), {{"format", "pt"}});
    }
    if (!options_.pairs && !source_.gguf())
      fail(ErrorCode::unsupported,
           "{}: a {} model has no GGUF metadata, and none was given; GGUF can be made of GGUF models only",
           source_.path().string(), to_string(source_.format()));
    GgufPairs pairs = options_.pairs ? *options_.pairs : gguf_pairs(*source_.gguf(), options_.mix);
    return layout_gguf(options_.output.filename().string(), std::move(pairs), outputs_of(plan_));
  }

  static TensorReport new_report(const PlannedTensor& tensor) {
    TensorReport report;
    report.name = tensor.output.name;
    report.from = tensor.added ? tensor.output.encoding : tensor.sources.front()->encoding;
    report.to = tensor.output.encoding;
    for (const TensorInfo* source : tensor.sources) report.bytes_before += source->bytes;
    report.bytes_after = tensor.output.bytes;
    return report;
  }

  void take_over(const PlannedTensor& tensor, const Json& note) {
    TensorReport report = new_report(tensor);
    if (!note.is_null()) report.stats = stats_from_json(note);
    report_.tensors.push_back(std::move(report));
  }

  void convert_tensor(const PlannedTensor& tensor) {
    TensorReport report = new_report(tensor);
    if (tensor.added) {
      staged().write(std::as_bytes(std::span(tensor.added->values)));
      report_.tensors.push_back(std::move(report));
      return;
    }
    std::vector<std::vector<std::byte>> joined(tensor.sources.size());
    std::vector<std::span<const std::byte>> stored;
    for (std::size_t i = 0; i < joined.size(); ++i) stored.push_back(stored_bytes_of(*tensor.sources[i], joined[i]));
    if (tensor.keeps_bytes()) {
      write_bytes(tensor, stored);
    } else {
      std::vector<std::byte> encoded(tensor.output.bytes);
      report.stats = encode(tensor, stored, encoded);
      check_finite(tensor, *report.stats);
      staged().write(encoded, to_json(*report.stats));
    }
    for (const TensorInfo* source : tensor.sources) source_.drop_pages(*source);
    report_.tensors.push_back(std::move(report));
  }

  /// The tensor's bytes in one piece, in `joined` if the file has them in several.
  std::span<const std::byte> stored_bytes_of(const TensorInfo& tensor, std::vector<std::byte>& joined) const {
    if (tensor.extents.size() == 1) return source_.bytes(tensor);
    joined.resize(tensor.bytes);
    source_.copy_bytes(tensor, joined);
    return joined;
  }

  void write_bytes(const PlannedTensor& tensor, const std::vector<std::span<const std::byte>>& stored) {
    if (stored.size() == 1 && tensor.edit.row_order.empty()) {
      staged().write(stored.front());
      return;
    }
    std::vector<std::byte> bytes;
    bytes.reserve(tensor.output.bytes);
    for (const std::span<const std::byte> part : stored) {
      const std::vector<std::byte> edited = edited_bytes(part, tensor.edit);
      bytes.insert(bytes.end(), edited.begin(), edited.end());
    }
    staged().write(bytes);
  }

  EncodingStats encode(const PlannedTensor& tensor, const std::vector<std::span<const std::byte>>& stored,
                       std::span<std::byte> out) {
    std::vector<ElementReader> parts;
    for (std::size_t i = 0; i < stored.size(); ++i)
      parts.push_back(edited_elements(*tensor.sources[i], stored[i], tensor.edit));
    const std::vector<float> weights = column_weights(source_, *tensor.sources.front());
    return encode_tensor(stacked_elements(std::move(parts), tensor.sources.front()->elements()), tensor.output.shape,
                         tensor.output.encoding, out, pool_,
                         tensor.edit.transposed ? std::span<const float>() : std::span(weights));
  }

  static void check_finite(const PlannedTensor& tensor, const EncodingStats& stats) {
    if (stats.not_finite == 0 || info(tensor.output.encoding).block_size == 1) return;
    fail(ErrorCode::format,
         "tensor \"{}\" holds {} values that are infinite or not numbers, which {} cannot hold; the weights are "
         "damaged, or "
         "keep this model in f32",
         printable(tensor.sources.front()->name), stats.not_finite, to_string(tensor.output.encoding));
  }

  void finish() {
    if (artifact_) {
      artifact_->finish(pool_);
    } else if (options_.format == OutputFormat::gguf) {
      staged_->commit_file();
    } else {
      if (staged_->layout().files.size() > 1)
        staged_->add_file("model.safetensors.index.json", safetensors_index(staged_->layout()));
      for (const SideFile& file : files_) staged_->add_file(file.name, file.content);
      staged_->commit_folder();
    }
  }

  const ModelSource& source_;
  const ConvertOptions& options_;
  ThreadPool& pool_;
  Progress* progress_;
  std::vector<PlannedTensor> plan_;
  std::vector<SideFile> files_;
  std::unique_ptr<ArtifactWriter> artifact_;
  std::unique_ptr<StagedWriter> staged_;
  ConvertReport report_;
};

}  // namespace

std::string_view to_string(OutputFormat format) {
  switch (format) {
    case OutputFormat::artifact:
      return "artifact";
    case OutputFormat::gguf:
      return "gguf";
    case OutputFormat::safetensors:
      return "safetensors";
  }
  return "unknown";
}

std::optional<OutputFormat> parse_output_format(std::string_view name) {
  for (const OutputFormat format : {OutputFormat::artifact, OutputFormat::gguf, OutputFormat::safetensors})
    if (to_string(format) == name) return format;
  return std::nullopt;
}

std::uint64_t ConvertReport::bytes_before() const {
  std::uint64_t total = 0;
  for (const TensorReport& tensor : tensors) total += tensor.bytes_before;
  return total;
}

std::uint64_t ConvertReport::bytes_after() const {
  std::uint64_t total = 0;
  for (const TensorReport& tensor : tensors) total += tensor.bytes_after;
  return total;
}

Json to_json(const ConvertReport& report) {
  Json tensors = Json::array();
  for (const TensorReport& tensor : report.tensors) {
    Json entry{{"name", tensor.name},
               {"from", to_string(tensor.from)},
               {"to", to_string(tensor.to)},
               {"bytesBefore", tensor.bytes_before},
               {"bytesAfter", tensor.bytes_after}};
    if (tensor.stats) entry.update(to_json(*tensor.stats));
    tensors.push_back(std::move(entry));
  }
  return {{"output", report.output.string()},   {"bytesBefore", report.bytes_before()},
          {"bytesAfter", report.bytes_after()}, {"resumedTensors", report.resumed},
          {"leftOut", report.left_out},         {"tensors", std::move(tensors)}};
}

std::uint64_t planned_bytes(const ModelSource& source, const ConvertOptions& options) {
  std::uint64_t total = 0;
  std::vector<std::string> left_out;
  for (const PlannedTensor& tensor : plan_conversion(source, options, left_out)) total += tensor.output.bytes;
  return total;
}

ConvertReport convert(const ModelSource& source, const ConvertOptions& options, ThreadPool& pool, Progress* progress) {
  return Conversion(source, options, pool, progress).run();
}

}  // namespace candor
