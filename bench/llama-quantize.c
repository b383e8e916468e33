// llama-quantize SOURCE.gguf OUTPUT.gguf Q4_K_M THREADS: llama.cpp's quantizer, called in its library. The package from npm
// holds the library without the program. Declarations are those of its llama.h (release v0.5.0); compare-quantize builds it.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct quantize_params {
  int32_t threads;
  int file_type, output_type, embedding_type;
  bool requantize, quantize_output, only_copy, pure, keep_split, dry_run;
  const void *importance, *overrides, *types, *pruned;
  size_t buffer;
};

struct quantize_params llama_model_quantize_default_params(void);
uint32_t llama_model_quantize(const char* source, const char* output, const struct quantize_params* params);
void llama_backend_init(void);

enum { kQ4KM = 15 };

int main(int argc, char** argv) {
  if (argc != 5 || strcmp(argv[3], "Q4_K_M") != 0) {
    fputs("llama-quantize SOURCE.gguf OUTPUT.gguf Q4_K_M THREADS\n", stderr);
    return 2;
  }
  llama_backend_init();
  struct quantize_params params = llama_model_quantize_default_params();
  params.threads = atoi(argv[4]);
  params.file_type = kQ4KM;
  return llama_model_quantize(argv[1], argv[2], &params) == 0 ? 0 : 1;
}
