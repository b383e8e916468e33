// Pulling from a hub on this machine: what arrives, what is refused, and that an interrupted pull goes on.
#include "hub/pull.h"

#include <gmock/gmock.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>

#include "formats/test_folder.h"
#include "hub/hub_server.h"

namespace candor {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string long_content(std::size_t size) {
  std::string content;
  while (content.size() < size) content += "line " + std::to_string(content.size()) + "\n";
  content.resize(size);
  return content;
}

std::vector<std::string> paths_of(const std::vector<HubFile>& files) {
  std::vector<std::string> paths;
  for (const HubFile& file : files) paths.push_back(file.path);
  return paths;
}

class PullTest : public testing::Test {
 protected:
  PullTest() {
    hub.files = {{"config.json", "{}\n"},          {"model.safetensors", long_content(50'000)},
                 {"tokenizer.json", "{\"a\": 1}"}, {".gitattributes", "x"},
                 {"pytorch_model.bin", "pickle"},  {"onnx/model.onnx", "y"}};
    hub.blob_ids["config.json"] = "0967ef424bce6791893e9a57bb952f80fd536e93";  // git hash-object of "{}\n"
  }

  PullOptions options() const {
    PullOptions out;
    out.reference = HubReference::parse("owner/model");
    out.server.endpoint = hub.address();
    out.folder = folder.path() / "model";
    return out;
  }
  static PullResult run(const PullOptions& options) {
    return pull(
        options, [](std::uint64_t) {}, [](std::uint64_t) {});
  }
  std::string content(const std::string& name) const { return read_file(folder.path() / "model" / name, 1 << 20); }

  TestFolder folder;
  HubOnThisMachine hub;
};

TEST_F(PullTest, FetchesWhatMakesAModelAndRecordsTheCommit) {
  std::uint64_t total = 0;
  std::uint64_t last = 0;
  const PullResult result = pull(
      options(), [&](std::uint64_t bytes) { total = bytes; },
      [&](std::uint64_t done) {
        EXPECT_GE(done, last);
        last = done;
      });
  EXPECT_THAT(paths_of(result.files), ElementsAre("config.json", "model.safetensors", "tokenizer.json"));
  EXPECT_EQ(content("model.safetensors"), hub.files["model.safetensors"]);
  EXPECT_EQ(content("config.json"), "{}\n");
  EXPECT_EQ(total, 50'011u);
  EXPECT_EQ(last, total);
  EXPECT_EQ(result.downloaded, total);
  const Json record = parse_json(content(".candor-pull.json"), "record");
  EXPECT_EQ(record["commit"], kCommit);
  EXPECT_EQ(record["files"][1]["sha256"], sha256_hex(hub.files["model.safetensors"]));
  EXPECT_FALSE(fs::exists(folder.path() / "model.partial"));
}

TEST_F(PullTest, AsksForTheRevisionAndTakesTheCommitThatItIs) {
  PullOptions tagged = options();
  tagged.reference = HubReference::parse("https://huggingface.co/owner/model@v1.0");
  EXPECT_EQ(run(tagged).commit, kCommit);
  EXPECT_EQ(hub.asked_revision, "v1.0");
}

TEST_F(PullTest, GoesOnAfterABrokenConnectionAndAfterAnEnd) {
  hub.break_after = 20'000;
  const PullResult result = run(options());  // one connection breaks, the next goes on
  EXPECT_EQ(content("model.safetensors"), hub.files["model.safetensors"]);
  EXPECT_EQ(result.downloaded, result.bytes);
  EXPECT_EQ(hub.sent, result.bytes);
  fs::rename(folder.path() / "model", folder.path() / "model.partial");
  fs::resize_file(folder.path() / "model.partial/model.safetensors", 12'345);  // a process that ended there
  EXPECT_EQ(run(options()).downloaded, 50'000u - 12'345u);
  EXPECT_EQ(content("model.safetensors"), hub.files["model.safetensors"]);
}

TEST_F(PullTest, AServerWithoutRangesSendsAllAgain) {
  hub.knows_ranges = false;
  hub.break_after = 20'000;
  const PullResult result = run(options());
  EXPECT_EQ(content("model.safetensors"), hub.files["model.safetensors"]);
  EXPECT_GT(result.downloaded, result.bytes);
}

TEST_F(PullTest, AnotherCommitStartsAnew) {
  (void)run(options());
  fs::rename(folder.path() / "model", folder.path() / "model.partial");
  hub.files["model.safetensors"] = long_content(60'000);
  hub.commit = std::string(40, 'd');
  EXPECT_EQ(run(options()).downloaded, 60'011u);
}

TEST_F(PullTest, WhatIsThereIsCheckedAndNotFetched) {
  (void)run(options());
  hub.sent = 0;
  EXPECT_TRUE(run(options()).was_there);
  EXPECT_EQ(hub.sent, 0u);
  std::string bytes = content("model.safetensors");
  bytes[77] ^= 1;
  folder.write("model/model.safetensors", bytes);
  EXPECT_THAT(error_of(ErrorCode::integrity, [&] { (void)run(options()); }), HasSubstr("model.safetensors"));
  hub.commit = std::string(40, 'e');
  EXPECT_THAT(error_of(ErrorCode::usage, [&] { (void)run(options()); }), HasSubstr(kCommit));
}

TEST_F(PullTest, OtherBytesAreThrownAway) {
  hub.sends_other_bytes = true;
  hub.files.erase("config.json");
  hub.files["manifest.json"] = "{}";
  EXPECT_THAT(error_of(ErrorCode::integrity, [&] { (void)run(options()); }), HasSubstr("but the hub states"));
  EXPECT_FALSE(fs::exists(folder.path() / "model"));
  hub.sends_other_bytes = false;
  EXPECT_NO_THROW((void)run(options()));
}

TEST_F(PullTest, ATokenOpensAndStaysWithItsHost) {
  hub.wanted_token = "hf_secret";
  EXPECT_THAT(error_of(ErrorCode::usage, [&] { (void)run(options()); }), HasSubstr("set HF_TOKEN"));
  PullOptions with_token = options();
  with_token.server.token = "hf_wrong";
  const std::string refused = error_of(ErrorCode::usage, [&] { (void)run(with_token); });
  EXPECT_THAT(refused, HasSubstr("does not open it"));
  EXPECT_THAT(refused, testing::Not(HasSubstr("hf_wrong")));
  with_token.server.token = "hf_secret";
  hub.redirect = hub.address("localhost") + "/elsewhere";  // another origin
  (void)run(with_token);
  EXPECT_EQ(hub.elsewhere_token, "");
  EXPECT_EQ(content("config.json"), "{}\n");
}

TEST_F(PullTest, RedirectsEndAndStayEncryptedOrHere) {
  hub.redirect = "/owner/model/resolve/" + kCommit + "/config.json";
  EXPECT_THAT(error_of(ErrorCode::io, [&] { (void)run(options()); }), HasSubstr("redirects"));
  hub.redirect = "http://example.org/config.json";
  EXPECT_THAT(error_of(ErrorCode::usage, [&] { (void)run(options()); }), HasSubstr("https://"));
}

TEST_F(PullTest, NamesThatLeaveTheFolderAreRefused) {
  for (const std::string name :
       {"../x.safetensors", "/etc/x", "a/../../x", "a//b", "a\\b", "a\nb", ".candor-pull.json"}) {
    hub.files = {{name, "x"}};
    EXPECT_THAT(error_of(ErrorCode::format, [&] { (void)run(options()); }), HasSubstr("file name")) << name;
  }
  EXPECT_FALSE(fs::exists(folder.path() / "x.safetensors"));
}

TEST_F(PullTest, OfSeveralGgufFilesOneMustBeChosen) {
  hub.files = {{"a-Q4_K_M.gguf", "a"},
               {"b-Q8_0-00001-of-00002.gguf", "b1"},
               {"b-Q8_0-00002-of-00002.gguf", "b2"},
               {"sub/c.gguf", "c"}};
  EXPECT_THAT(error_of(ErrorCode::usage, [&] { (void)run(options()); }),
              testing::AllOf(HasSubstr("3 GGUF models"), HasSubstr("--file"), HasSubstr("a-Q4_K_M.gguf")));
  PullOptions chosen = options();
  chosen.files = {"b-Q8_0-00001-of-00002.gguf"};
  EXPECT_THAT(paths_of(run(chosen).files), ElementsAre("b-Q8_0-00001-of-00002.gguf", "b-Q8_0-00002-of-00002.gguf"));
  chosen.files = {"sub/c.gguf"};
  chosen.folder = folder.path() / "c";
  (void)run(chosen);
  EXPECT_EQ(read_file(folder.path() / "c/sub/c.gguf", 10), "c");
  chosen.files = {"none.gguf"};
  EXPECT_THAT(error_of(ErrorCode::not_found, [&] { (void)run(chosen); }), HasSubstr("none.gguf"));
}

TEST_F(PullTest, WhatIsNoHubOrNoModelIsSaid) {
  hub.files = {{"readme.txt", "x"}};
  EXPECT_THAT(error_of(ErrorCode::unsupported, [&] { (void)run(options()); }), HasSubstr("no GGUF file"));
  hub.commit = "main";
  EXPECT_THAT(error_of(ErrorCode::format, [&] { (void)run(options()); }), HasSubstr("no commit"));
  PullOptions other = options();
  other.reference = HubReference::parse("owner/none");
  EXPECT_THAT(error_of(ErrorCode::not_found, [&] { (void)run(other); }), HasSubstr("404"));
  other.server.endpoint = "http://127.0.0.1:1";
  (void)error_of(ErrorCode::io, [&] { (void)run(other); });
}

TEST(HubReference, FormsThatAreNone) {
  for (const char* text : {"", "model", "a/b/c", "a/", "/b", "a b/c", "a/b@", "../b", "a/..", "a/b@x y", "a/b@../x"})
    EXPECT_THAT(error_of(ErrorCode::usage, [&] { (void)HubReference::parse(text); }), HasSubstr("OWNER/NAME")) << text;
}

/// A certificate for 127.0.0.1 that signs itself, and its key.
struct Certificate {
  Certificate() {
    key = EVP_RSA_gen(2048);
    certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("127.0.0.1"), -1, -1,
                               0);
    X509_set_issuer_name(certificate, name);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(certificate, key, EVP_sha256());
  }
  ~Certificate() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;

  void write(const fs::path& path) const {
    std::FILE* file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    PEM_write_X509(file, certificate);
    (void)std::fclose(file);
  }

  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
};

TEST(PullOverTls, ChecksTheCertificate) {
  const Certificate certificate;
  const TestFolder folder;
  HubOnThisMachine hub(std::make_unique<httplib::SSLServer>(certificate.certificate, certificate.key), "https");
  hub.files = {{"config.json", "{}"}, {"model.safetensors", long_content(3000)}};
  PullOptions options;
  options.reference = HubReference::parse("owner/model");
  options.server.endpoint = hub.address();
  options.folder = folder.path() / "model";
  const auto run = [&] {
    return pull(
        options, [](std::uint64_t) {}, [](std::uint64_t) {});
  };
  ::unsetenv("SSL_CERT_FILE");
  EXPECT_THAT(error_of(ErrorCode::io, [&] { (void)run(); }), HasSubstr("no trusted encrypted connection"));
  certificate.write(folder.path() / "ca.pem");
  ::setenv("SSL_CERT_FILE", (folder.path() / "ca.pem").c_str(), 1);
  EXPECT_EQ(run().bytes, 3002u);
  ::unsetenv("SSL_CERT_FILE");
}

}  // namespace
}  // namespace candor
