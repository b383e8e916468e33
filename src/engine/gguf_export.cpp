#include "engine/gguf_export.h"

#include <utility>

#include "models/gguf_export.h"
#include "models/stop_tokens.h"
#include "text/tokenizer_to_gguf.h"

namespace candor {

void describe_as_gguf(const ModelSource& source, ConvertOptions& options) {
  models::GgufExport form = models::export_gguf(source, options.mix);
  put_gguf_tokenizer(form.pairs, source, form.vocabulary, models::stop_tokens(source, form.vocabulary));
  options.pairs = std::move(form.pairs);
  options.edit = std::move(form.edit);
  options.added = std::move(form.added);
}

}  // namespace candor
