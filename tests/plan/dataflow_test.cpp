// The dataflow pass, on a registry of five kernels: what the compiler lets through and this pass must not.
#include "plan/dataflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "kernels/registry.h"

namespace candor::plan {
namespace {

using ::testing::HasSubstr;

const kernels::KernelRegistry& registry() {
  static const kernels::KernelRegistry value(parse_json(R"({"operations": {
    "gather": {"reads_src": false, "inputs": ["tokens"], "weights": ["weight"],
      "constants": [{"name": "scale", "type": "f32"}],
      "variants": {"v": {"file": "gather.cpp", "entryPoint": "main", "outputDtype": "f32",
        "encodings": {"tokens": ["u32"], "weight": ["f32"], "dst": "f32"}}}},
    "matmul": {"weights": ["weight"],
      "variants": {"v": {"file": "matmul.cpp", "entryPoint": "main", "mathDtype": "f32", "accumDtype": "f32",
        "outputDtype": "f32", "encodings": {"src": ["f32"], "weight": ["f32"], "dst": "f32"}}}},
    "residual_add": {"inputs": ["residual"],
      "variants": {"v": {"file": "residual.cpp", "entryPoint": "main", "inPlace": "src",
        "encodings": {"src": ["f32"], "residual": ["f32"], "dst": "f32"}}}},
    "attention": {"inputs": ["k", "v"], "constants": [
        {"name": "heads", "type": "u32"}, {"name": "kvHeads", "type": "u32"}, {"name": "headDim", "type": "u32"},
        {"name": "scale", "type": "f32"}, {"name": "window", "type": "u32"}, {"name": "softcap", "type": "f32"},
        {"name": "causal", "type": "bool"}],
      "variants": {"v": {"file": "attention.cpp", "entryPoint": "main",
        "encodings": {"src": ["f32"], "k": ["f32"], "v": ["f32"], "kv": ["f32"], "dst": "f32"}}}},
    "row_slice": {"constants": [{"name": "rows", "type": "enum", "choices": ["last", "all"]}],
      "variants": {"v": {"file": "row_slice.cpp", "entryPoint": "main", "encodings": {"src": ["f32"], "dst": "f32"}}}},
    "sample": {"inputs": ["sampler"],
      "variants": {"v": {"file": "sample.cpp", "entryPoint": "main",
        "encodings": {"src": ["f32"], "sampler": ["sampler"], "dst": "u32"}}}}
  }})",
                                                        "registry"),
                                             Json::object());
  return value;
}

TensorInfo tensor(const std::string& name, std::vector<std::uint64_t> shape, Encoding encoding = Encoding::f32) {
  TensorInfo info;
  info.name = name;
  info.shape = std::move(shape);
  info.encoding = encoding;
  return info;
}

/// A two-layer model: embed, then per layer a projection, attention and a residual, then head and sampling.
class DataflowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    add(R"({"id":"embed","section":"preLayer","op":"embed","src":"state","dst":"state","kernel":"gather.cpp",
            "inputs":{"tokens":"$tokens"},"weights":"embed","constants":{"scale":1}})");
    add(R"({"id":"q","section":"layer","op":"q_proj","src":"state","dst":"q","kernel":"matmul.cpp","weights":"l.{L}.q"})");
    add(R"({"id":"attention","section":"layer","op":"attention","src":"q","dst":"attn","kernel":"attention.cpp",
            "inputs":{"k":"q","v":"q"},"constants":{"heads":2,"kvHeads":2,"headDim":4,"scale":1,"window":0,"softcap":0,
            "causal":true}})");
    add(R"({"id":"residual","section":"layer","op":"attn_residual","src":"attn","dst":"state","kernel":"residual.cpp",
            "inputs":{"residual":"state"}})");
    add(R"({"id":"select","section":"postLayer","op":"select_rows","src":"state","dst":"state","kernel":"row_slice.cpp",
            "constants":{"rows":"last"}})");
    add(R"({"id":"head","section":"postLayer","op":"lm_head","src":"state","dst":"logits","kernel":"matmul.cpp",
            "weights":"embed"})");
    add(R"({"id":"sample","section":"sampling","op":"sample","src":"logits","dst":"token","kernel":"sample.cpp",
            "inputs":{"sampler":"$sampler"}})");
    tensors_["embed"] = tensor("embed", {16, 8});
    for (const char* name : {"l.0.q", "l.1.q"}) tensors_[name] = tensor(name, {8, 8});
  }

  void add(const std::string& json) { steps_.push_back(parse_json(json, "step")); }

  Json& step(const std::string& id) {
    for (Json& entry : steps_)
      if (entry["id"] == id) return entry;
    throw std::runtime_error("no step " + id);
  }

  Dataflow check() {
    plan_ = ExecutionPlan{};
    plan_.session = Json::object();
    for (const Json& raw : steps_) plan_.prefill.push_back(resolved(raw));
    plan_.decode = plan_.prefill;
    for (auto& entry : plan_.decode)
      if (decode_dtype_.contains(entry.id)) entry.precision.output = decode_dtype_[entry.id];
    return check_dataflow({plan_, 2, registry(), [this](std::string_view name) -> const TensorInfo* {
                             const auto found = tensors_.find(std::string(name));
                             return found == tensors_.end() ? nullptr : &found->second;
                           }});
  }

  void expect_error(const std::string& text) {
    try {
      (void)check();
      FAIL() << "accepted; expected: " << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(text));
      EXPECT_EQ(error.code(), ErrorCode::plan);
    }
  }

  static ResolvedStep resolved(const Json& raw) {
    ResolvedStep out;
    out.id = raw["id"].get<std::string>();
    out.op = raw["op"].get<std::string>();
    out.section = raw["section"].get<std::string>();
    out.phase = "both";
    out.src = raw["src"].get<std::string>();
    out.dst = raw["dst"].get<std::string>();
    out.kernel = raw.value("kernel", "");
    out.entry = "main";
    const std::string in = raw.value("testInput", "f32");
    out.precision = {in, "f32", "f32", raw.value("testOutput", "f32")};
    if (out.op == "attention") out.kv_io = KvIo{raw.value("testKv", "f32"), raw.value("testKv", "f32")};
    out.raw = raw;
    return out;
  }

  std::vector<Json> steps_;
  std::map<std::string, TensorInfo> tensors_;
  std::map<std::string, std::string> decode_dtype_;
  ExecutionPlan plan_;
};

TEST_F(DataflowTest, UnrollsLayersAndGivesEachWriteItsOwnValue) {
  const Dataflow flow = check();
  EXPECT_EQ(flow.prefill.steps.size(), 1u + 2 * 3 + 3);
  EXPECT_EQ(flow.prefill.values.size(), flow.prefill.steps.size());
  EXPECT_EQ(flow.weights, (std::vector<WeightUse>{{"embed"}, {"l.0.q"}, {"l.1.q"}}));
  ASSERT_EQ(flow.kv.size(), 2u);
  EXPECT_EQ(flow.kv[1].layer, 1);
  const auto& first_residual = flow.prefill.steps[3];
  EXPECT_EQ(first_residual.in_place_operand, 0);
  // The state that layer 1 reads is what layer 0's residual wrote.
  EXPECT_EQ(flow.prefill.steps[4].operands[0].value, first_residual.value);
  const auto& logits = flow.prefill.values[flow.prefill.steps[8].value];
  EXPECT_EQ(logits.shape.cols, 16u);
  EXPECT_EQ(logits.shape.rows, kernels::RowKind::sequences);
}

TEST_F(DataflowTest, ALaterReadKeepsAValueAlive) {
  const Dataflow flow = check();
  const auto& embedded = flow.prefill.values[flow.prefill.steps[0].value];
  EXPECT_EQ(embedded.last_read, 3u);  // by the residual of layer 0
}

TEST_F(DataflowTest, RefusesAnOperandNobodyProduced) {
  step("attention")["inputs"]["k"] = "k";
  expect_error("k reads slot \"k\", which no step before it writes");
}

TEST_F(DataflowTest, RefusesToReadTheStateBeforeItIsWritten) {
  steps_.erase(steps_.begin());
  expect_error("src reads slot \"state\", which no step before it writes");
}

TEST_F(DataflowTest, RefusesASlotOfAnotherLayer) {
  step("q")["layers"] = {0};
  expect_error("step \"attention\" (layer 1): src reads slot \"q\", which belongs to another layer");
}

TEST_F(DataflowTest, RefusesALayerSlotAfterTheLayers) {
  step("head")["src"] = "attn";
  expect_error("belongs to another layer");
}

TEST_F(DataflowTest, RefusesF16BesideF32InAResidual) {
  step("attention")["testOutput"] = "f16";
  expect_error("src is slot \"attn\" in f16, but the step works on f32; insert a cast step");
}

TEST_F(DataflowTest, RefusesAnUnpinnedCast) {
  steps_.insert(steps_.begin() + 1, parse_json(R"({"id":"c","section":"layer","op":"cast","src":"state","dst":"state",
      "toDtype":"f16"})",
                                               "step"));
  expect_error("names no kernel; a cast needs a kernel and a kernelRef");
}

TEST_F(DataflowTest, RefusesAPrecisionTheKernelDoesNotWorkIn) {
  step("head")["kernel"] = "matmul.cpp";
  step("head")["testOutput"] = "f16";
  expect_error("precision.outputDtype is f16 but kernel \"matmul.cpp#main\" works in f32");
}

TEST_F(DataflowTest, RefusesShapesThatDoNotFit) {
  tensors_["l.1.q"] = tensor("l.1.q", {8, 9});
  expect_error("(layer 1): weight l.1.q is [8, 9] but src has 8 columns");
}

TEST_F(DataflowTest, RefusesAMissingTensorAndAForeignEncoding) {
  tensors_.erase("l.1.q");
  expect_error("the model has no tensor \"l.1.q\"");
  tensors_["l.1.q"] = tensor("l.1.q", {8, 8}, Encoding::f16);
  expect_error("operand weight is encoded as f16, kernel \"matmul.cpp#main\" reads [\"f32\"]");
}

TEST_F(DataflowTest, RefusesConstantsThatAreMissingUnknownOrWrong) {
  step("select")["constants"] = Json::object();
  expect_error("constant rows of operation row_slice is missing");
  step("select")["constants"] = {{"rows", "first"}};
  expect_error("constant rows must be one of last, all; got \"first\"");
  step("select")["constants"] = {{"rows", "last"}, {"eps", 1}};
  expect_error("unknown constant \"eps\"");
}

TEST_F(DataflowTest, RefusesStepsOutOfOrder) {
  std::swap(steps_[3], steps_[5]);
  expect_error("is listed after a step of section postLayer");
}

TEST_F(DataflowTest, RefusesLayersTheModelLacks) {
  step("q")["layers"] = {0, 1, 2};
  expect_error("step \"q\" names layer 2; the model has layers 0 to 1");
}

TEST_F(DataflowTest, RefusesSamplingWithoutRowSelection) {
  std::erase_if(steps_, [](const Json& entry) { return entry["id"] == "select"; });
  expect_error("select the last one with row_slice first");
}

TEST_F(DataflowTest, RefusesAKvEncodingTheKernelDoesNotKeep) {
  step("attention")["testKv"] = "f16";
  expect_error("operand kv is encoded as f16");
}

TEST_F(DataflowTest, RefusesUnknownInputsWeightsAndExternals) {
  step("residual")["inputs"]["bias"] = "state";
  expect_error("operation residual_add has no input \"bias\"");
  step("residual")["inputs"].erase("bias");
  step("residual")["inputs"]["residual"] = "$state";
  expect_error("\"$state\" is none of $tokens, $positions, $types, $sampler");
  step("residual")["inputs"]["residual"] = "state";
  step("residual")["weights"] = "embed";
  expect_error("operation residual_add takes no weights");
}

TEST_F(DataflowTest, RefusesAPlaceholderOutsideTheLayers) {
  step("head")["weights"] = "l.{L}.q";
  expect_error("asks for a layer outside the layers");
}

}  // namespace
}  // namespace candor::plan
