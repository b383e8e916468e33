#include "formats/convert.h"

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "formats/artifact_writer.h"
#include "formats/column_weights.h"
#include "formats/manifest.h"
#include "formats/quant/codec.h"
#include "formats/safetensors_writer.h"
#include "formats/side_files.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

/// One tensor's way from the source to the output.
struct PlannedTensor {
  const TensorInfo* source = nullptr;
  const AddedTensor* added = nullptr;  ///< where there is no source
  TensorInfo output;
  std::function<void(std::span<float>, std::span<const std::uint64_t>)> apply;
  std::vector<std::uint32_t> row_order;

  [[nodiscard]] bool keeps_blocks() const {
    return !apply && output.encoding == source->encoding && output.layout == source->layout;
  }
};

/// `values`, whose rows are `width` long, with row i taken from row order[i].
template <typename T>
std::vector<T> reordered(std::span<const T> values, std::span<const std::uint32_t> order, std::size_t width) {
  std::vector<T> out;
  out.reserve(values.size());
  for (const std::uint32_t row : order) {
    const auto from = values.subspan(row * width, width);
    out.insert(out.end(), from.begin(), from.end());
  }
  return out;
}

/// Each row exactly once, or the caller's edit is wrong.
void check_order(std::span<const std::uint32_t> order, const TensorInfo& tensor) {
  std::vector<bool> seen(tensor.shape.empty() ? 0 : tensor.shape[0]);
  bool fits = order.size() == seen.size();
  for (const std::uint32_t row : order) {
    fits = fits && row < seen.size() && !seen[row];
    if (fits) seen[row] = true;
  }
  if (!fits) fail(ErrorCode::internal, "tensor \"{}\": the order of rows is none", printable(tensor.name));
}

void check_encoding(const TensorInfo& from, Encoding to, const ConvertOptions& options) {
  if (from.encoding == to) return;
  if (!can_quantize(to))
    fail(ErrorCode::unsupported, "tensor \"{}\": {} cannot be written", printable(from.name), to_string(to));
  if (info(from.encoding).block_size > 1 && !options.requantize)
    fail(ErrorCode::unsupported,
         "tensor \"{}\" is {} already; encoding it as {} loses precision twice: convert the original weights, or allow "
         "it "
         "with --requantize",
         printable(from.name), to_string(from.encoding), to_string(to));
}

PlannedTensor plan_tensor(const TensorInfo& tensor, Encoding to, TensorEdit edit, const ConvertOptions& options) {
  to = edit.encoding.value_or(to);
  check_encoding(tensor, to, options);
  PlannedTensor planned;
  planned.source = &tensor;
  planned.output.name = std::move(edit.name);
  planned.output.encoding = to;
  planned.output.shape = tensor.shape;
  planned.apply = std::move(edit.apply);
  planned.row_order = std::move(edit.row_order);
  if (!planned.row_order.empty()) check_order(planned.row_order, tensor);
  const bool moves_rows = !planned.row_order.empty() && tensor.layout != TensorLayout::rows;
  if ((planned.apply || moves_rows) && !can_quantize(to))
    fail(ErrorCode::unsupported, "tensor \"{}\" must be rearranged, which {} does not allow; choose another --quant",
         printable(tensor.name), to_string(to));
  const bool unchanged = to == tensor.encoding && !planned.apply;
  if (unchanged && tensor.layout != TensorLayout::rows) {
    if (options.format != OutputFormat::artifact)
      fail(ErrorCode::unsupported, "tensor \"{}\" has layout {}, which {} does not have; choose a --quant",
           printable(tensor.name), to_string(tensor.layout), to_string(options.format));
    planned.output.layout = tensor.layout;
  }
  planned.output.bytes = padded_bytes(to, tensor.shape, planned.output.layout, tensor.name);
  return planned;
}

std::vector<PlannedTensor> plan_tensors(const ModelSource& source, const ConvertOptions& options,
                                        std::vector<std::string>& left_out) {
  const std::vector<TensorInfo>& tensors = source.tensors();
  const std::vector<Encoding> encodings = choose_encodings(options.mix, tensors);
  options.map.check_used(tensors);
  std::vector<PlannedTensor> plan;
  plan.reserve(tensors.size() + options.added.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorEdit edit{tensors[i].name};
    if (options.edit)
      if (auto given = options.edit(tensors[i])) edit = std::move(*given);
    if (const auto mapped = options.map.find(tensors[i].name)) edit.encoding = mapped;
    if (edit.left_out) {
      left_out.push_back(tensors[i].name);
    } else {
      plan.push_back(plan_tensor(tensors[i], encodings[i], std::move(edit), options));
    }
  }
  for (const AddedTensor& tensor : options.added) {
    PlannedTensor planned;
    planned.added = &tensor;
    planned.output.name = tensor.name;
    planned.output.shape = {tensor.values.size()};
    planned.output.bytes = tensor.values.size() * sizeof(float);
    plan.push_back(std::move(planned));
  }
  return plan;
}

std::vector<TensorInfo> outputs_of(const std::vector<PlannedTensor>& plan) {
  std::vector<TensorInfo> outputs;
  outputs.reserve(plan.size());
  for (const PlannedTensor& tensor : plan) outputs.push_back(tensor.output);
  return outputs;
}

/// Drops the tensors that the header's `tensors` does not have; returns their names.
std::vector<std::string> keep_listed(std::vector<PlannedTensor>& plan, const Json& header) {
  const auto listed = header.find("tensors");
  if (listed == header.end() || !listed->is_object()) return {};
  std::unordered_set<std::string> names;
  for (const auto& [name, entry] : listed->items()) names.insert(name);
  std::vector<std::string> left_out;
  std::erase_if(plan, [&](const PlannedTensor& tensor) {
    if (names.contains(tensor.output.name)) return false;
    left_out.push_back(tensor.output.name);
    return true;
  });
  return left_out;
}

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
    plan_ = plan_tensors(source, options, report_.left_out);
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
    report.from = tensor.source ? tensor.source->encoding : tensor.output.encoding;
    report.to = tensor.output.encoding;
    report.bytes_before = tensor.source ? tensor.source->bytes : 0;
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
    std::vector<std::byte> joined;
    const std::span<const std::byte> stored = stored_bytes_of(*tensor.source, joined);
    if (tensor.keeps_blocks() && tensor.row_order.empty()) {
      staged().write(stored);
    } else if (tensor.keeps_blocks() && tensor.source->layout == TensorLayout::rows) {
      staged().write(reordered(stored, tensor.row_order, stored.size() / tensor.row_order.size()));
    } else {
      std::vector<std::byte> encoded(tensor.output.bytes);
      report.stats = encode(tensor, stored, encoded);
      check_finite(tensor, *report.stats);
      staged().write(encoded, to_json(*report.stats));
    }
    report_.tensors.push_back(std::move(report));
  }

  /// The tensor's bytes in one piece, in `joined` if the file has them in several.
  std::span<const std::byte> stored_bytes_of(const TensorInfo& tensor, std::vector<std::byte>& joined) const {
    if (tensor.extents.size() == 1) return source_.bytes(tensor);
    joined.resize(tensor.bytes);
    source_.copy_bytes(tensor, joined);
    return joined;
  }

  EncodingStats encode(const PlannedTensor& tensor, std::span<const std::byte> stored, std::span<std::byte> out) {
    const std::vector<float> weights = column_weights(source_, *tensor.source);
    const auto run = [&](const ElementReader& read) {
      return encode_tensor(read, tensor.output.shape, tensor.output.encoding, out, pool_, weights);
    };
    if (!tensor.apply && tensor.row_order.empty() && tensor.source->layout != TensorLayout::columns)
      return run(stored_elements(*tensor.source, stored));
    std::vector<float> values = all_values(*tensor.source, stored);
    if (!tensor.row_order.empty())
      values = reordered(std::span<const float>(values), tensor.row_order, values.size() / tensor.row_order.size());
    if (tensor.apply) tensor.apply(values, tensor.output.shape);
    return run([&](std::uint64_t first, std::span<float> to) {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), to.size(), to.begin());
    });
  }

  /// All values in the order of the logical shape.
  static std::vector<float> all_values(const TensorInfo& tensor, std::span<const std::byte> stored) {
    std::vector<float> values(tensor.elements());
    if (tensor.layout != TensorLayout::columns) {
      stored_elements(tensor, stored)(0, values);
      return values;
    }
    TensorInfo transposed = tensor;
    transposed.layout = TensorLayout::rows;
    std::swap(transposed.shape[0], transposed.shape[1]);
    std::vector<float> by_column(values.size());
    stored_elements(transposed, stored)(0, by_column);
    const std::uint64_t rows = tensor.shape[0];
    const std::uint64_t cols = tensor.shape[1];
    for (std::uint64_t row = 0; row < rows; ++row)
      for (std::uint64_t col = 0; col < cols; ++col) values[row * cols + col] = by_column[col * rows + row];
    return values;
  }

  static void check_finite(const PlannedTensor& tensor, const EncodingStats& stats) {
    if (stats.not_finite == 0 || info(tensor.output.encoding).block_size == 1) return;
    fail(ErrorCode::format,
         "tensor \"{}\" holds {} values that are infinite or not numbers, which {} cannot hold; the weights are "
         "damaged, or "
         "keep this model in f32",
         printable(tensor.source->name), stats.not_finite, to_string(tensor.output.encoding));
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
  for (const PlannedTensor& tensor : plan_tensors(source, options, left_out)) total += tensor.output.bytes;
  return total;
}

ConvertReport convert(const ModelSource& source, const ConvertOptions& options, ThreadPool& pool, Progress* progress) {
  return Conversion(source, options, pool, progress).run();
}

}  // namespace candor
