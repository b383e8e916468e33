#include "plan/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/registry.h"

namespace candor::plan {
namespace {

constexpr int kRowHeight = 46;
constexpr int kBoxHeight = 32;
constexpr int kBoxLeft = 260;
constexpr int kBoxWidth = 430;
constexpr int kTop = 90;
constexpr int kWidth = 980;

/// A run of layers that execute the same steps, shown by its first layer.
struct Fold {
  std::int32_t first = -1;
  std::vector<std::int32_t> layers;
};

struct Row {
  std::uint32_t step;
  int y;
};

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

/// One colour a group of encodings; the legend lists those that occur.
std::string_view colour(Encoding encoding) {
  switch (encoding) {
    case Encoding::f32:
      return "#2f6db5";
    case Encoding::f16:
      return "#2e8b57";
    case Encoding::bf16:
      return "#5aa02c";
    case Encoding::u32:
      return "#7a7a7a";
    default:
      return "#c2571a";
  }
}

std::string layer_range(const std::vector<std::int32_t>& layers) {
  const bool contiguous = layers.back() - layers.front() + 1 == static_cast<std::int32_t>(layers.size());
  if (layers.size() == 1) return fmt::format("layer {}", layers.front());
  if (contiguous) return fmt::format("layers {}–{}, {} times", layers.front(), layers.back(), layers.size());
  return fmt::format("layers {}", fmt::join(layers, ", "));
}

class Picture {
 public:
  Picture(const PhaseFlow& flow, std::string_view title) : flow_(flow), title_(title) {}

  std::string draw() {
    fold_layers();
    place_rows();
    for (const Row& row : rows_) draw_edges(row);
    for (const Row& row : rows_) draw_box(row);
    const int height = y_ + 40;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
               "<text x=\"20\" y=\"30\" font-size=\"17\">{2}</text>\n",
               kWidth, height, escape(title_)) +
           legend() + body_ + "</svg>\n";
  }

 private:
  /// Two layers are alike if they run the same steps and write values of the same encodings.
  void fold_layers() {
    std::map<std::int32_t, std::string> signature;
    for (const StepInstance& step : flow_.steps) {
      const Value& value = flow_.values[step.value];
      if (step.layer >= 0) signature[step.layer] += step.step->id + ":" + std::string(to_string(value.encoding)) + ";";
    }
    for (const auto& [layer, text] : signature) {
      const auto same = [&](const Fold& fold) { return signature[fold.first] == text; };
      const auto found = std::find_if(folds_.begin(), folds_.end(), same);
      if (found == folds_.end()) {
        folds_.push_back({layer, {layer}});
      } else {
        found->layers.push_back(layer);
      }
    }
  }

  void place_rows() {
    y_ = kTop;
    std::int32_t open_layer = -1;
    int open_y = 0;
    const auto close = [&] {
      if (open_layer < 0) return;
      frame(open_layer, open_y, y_);
      y_ += 16;
      open_layer = -1;
    };
    for (std::uint32_t i = 0; i < flow_.steps.size(); ++i) {
      const std::int32_t layer = flow_.steps[i].layer;
      const bool shown =
          layer < 0 || std::any_of(folds_.begin(), folds_.end(), [&](const Fold& fold) { return fold.first == layer; });
      if (!shown) continue;
      if (layer != open_layer) {
        close();
        if (layer >= 0) {
          open_layer = layer;
          open_y = y_;
          y_ += 28;
        }
      }
      row_of_[i] = y_;
      rows_.push_back({i, y_});
      y_ += kRowHeight;
    }
    close();
  }

  void frame(std::int32_t layer, int from, int to) {
    const auto fold =
        std::find_if(folds_.begin(), folds_.end(), [&](const Fold& entry) { return entry.first == layer; });
    body_ += fmt::format(
        "<rect x=\"20\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"#f6f6f2\" stroke=\"#c9c9c0\"/>\n"
        "<text x=\"34\" y=\"{}\" fill=\"#555\">{}</text>\n",
        from, kWidth - 40, to - from, from + 18, layer_range(fold->layers));
  }

  void draw_box(const Row& row) {
    const StepInstance& step = flow_.steps[row.step];
    const Value& value = flow_.values[step.value];
    body_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"white\" stroke=\"{}\" "
        "stroke-width=\"1.6\"/>\n"
        "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n"
        "<text x=\"{}\" y=\"{}\" fill=\"#666\" font-size=\"11\">{}#{}</text>\n",
        kBoxLeft, row.y, kBoxWidth, kBoxHeight, colour(value.encoding), kBoxLeft + 10, row.y + 20,
        escape(step.step->op), kBoxLeft + 165, row.y + 20, escape(step.step->kernel), escape(step.step->entry));
    body_ += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{} [{} × {}] {}</text>\n", kBoxLeft + kBoxWidth + 110,
                         row.y + 20, colour(value.encoding), escape(value.slot),
                         value.shape.rows == kernels::RowKind::tokens ? "tokens" : "sequences", value.shape.cols,
                         to_string(value.encoding));
    used_.emplace(to_string(value.encoding), colour(value.encoding));
  }

  /// A line from the step that wrote each operand: straight down from the step before, else around the right side,
  /// wider the further it comes. An operand from a layer that is folded away enters at the left.
  void draw_edges(const Row& row) {
    for (const Operand& operand : flow_.steps[row.step].operands) {
      if (operand.is_external) {
        side_label(row, std::string(to_string(operand.external)), "#7a7a7a");
        continue;
      }
      const Value& value = flow_.values[operand.value];
      const auto from = row_of_.find(value.producer);
      if (from == row_of_.end()) {
        side_label(row, value.slot + " of the layer before", colour(value.encoding));
        continue;
      }
      const int y1 = from->second + kBoxHeight;
      const int span = row.y - from->second;
      if (span <= kRowHeight + 44 && value.producer + 1 == row.step) {
        body_ += fmt::format("<path d=\"M {0} {1} L {0} {2}\" stroke=\"{3}\" stroke-width=\"1.8\" fill=\"none\"/>\n",
                             kBoxLeft + kBoxWidth / 2, y1, row.y, colour(value.encoding));
        continue;
      }
      const int right = kBoxLeft + kBoxWidth;
      const int bulge = std::min(100, 14 + span / 10);
      body_ += fmt::format(
          "<path d=\"M {0} {1} C {2} {1}, {2} {3}, {0} {3}\" stroke=\"{4}\" stroke-width=\"1.5\" fill=\"none\"/>\n",
          right, from->second + kBoxHeight / 2, right + bulge, row.y + kBoxHeight / 2, colour(value.encoding));
    }
  }

  void side_label(const Row& row, const std::string& text, std::string_view stroke) {
    const int y = row.y + kBoxHeight / 2;
    body_ += fmt::format(
        "<path d=\"M {} {} L {} {}\" stroke=\"{}\" stroke-width=\"1.5\"/>\n"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{}\">{}</text>\n",
        kBoxLeft - 40, y, kBoxLeft, y, stroke, kBoxLeft - 46, y + 4, stroke, escape(text));
  }

  std::string legend() const {
    std::string out;
    int x = 20;
    for (const auto& [name, stroke] : used_) {
      out += fmt::format(
          "<rect x=\"{}\" y=\"48\" width=\"14\" height=\"14\" fill=\"{}\"/><text x=\"{}\" y=\"60\">{}</text>\n", x,
          stroke, x + 20, name);
      x += 90;
    }
    return out;
  }

  const PhaseFlow& flow_;
  std::string_view title_;
  std::vector<Fold> folds_;
  std::vector<Row> rows_;
  std::map<std::uint32_t, int> row_of_;
  std::map<std::string_view, std::string_view> used_;
  std::string body_;
  int y_ = 0;
};

}  // namespace

std::string to_svg(const Dataflow& flow, std::string_view phase, std::string_view title) {
  return Picture(phase == "decode" ? flow.decode : flow.prefill, title).draw();
}

}  // namespace candor::plan
