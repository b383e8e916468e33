#!/usr/bin/env python3
"""Makes a tiny model with random weights and its reference logits, with Hugging Face transformers.

    scripts/reference_logits.py FOLDER MODEL_TYPE [key=value ...]

FOLDER gets config.json, model.safetensors and expected.safetensors with input_ids, logits [T, V] float32 (float32,
eager attention), greedy_ids (24 tokens after input_ids) and greedy_gap (best minus second logit at each). Values are
JSON. Needs the packages torch, transformers and safetensors; the project's own build and tests need none of them.
"""

import json
import pathlib
import sys

TOKENS, GREEDY = 40, 24
DIMENSIONS = {
    "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 320, "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2,
    "pad_token_id": 0,
}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModelForCausalLM

    folder, model_type = pathlib.Path(sys.argv[1]), sys.argv[2]
    settings = dict(DIMENSIONS)
    for argument in sys.argv[3:]:
        key, _, value = argument.partition("=")
        settings[key] = json.loads(value)
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **settings)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            # As they come, weights are so small that layers hardly matter, and norms are exactly 1.
            weight.copy_(torch.randn_like(weight) * 0.2 + (1.0 if "norm" in name and name.endswith("weight") else 0.0))
    model.save_pretrained(folder, safe_serialization=True)

    ids = torch.randint(3, config.vocab_size, (TOKENS,))
    with torch.no_grad():
        logits = model(ids[None]).logits[0]
        tokens, greedy, gaps = ids.tolist(), [], []
        for _ in range(GREEDY):
            best = model(torch.tensor([tokens])).logits[0, -1].topk(2)
            greedy.append(best.indices[0].item())
            gaps.append((best.values[0] - best.values[1]).item())
            tokens.append(greedy[-1])
    save_file({"input_ids": ids.to(torch.int32), "logits": logits.float().contiguous(),
               "greedy_ids": torch.tensor(greedy, dtype=torch.int32), "greedy_gap": torch.tensor(gaps)},
              folder / "expected.safetensors")


if __name__ == "__main__":
    main()
