#!/usr/bin/env python3
"""Makes tiny models with random weights and what Hugging Face transformers computes of them.

    scripts/reference_logits.py OUTPUT [CASE ...]

Each case, or each of those named, becomes a folder in OUTPUT of about 100 KB: config.json, model.safetensors and
expected.safetensors. The latter is what transformers computes of the saved folder (float32, eager attention): of a
decoder input_ids, logits [T, V], greedy_ids (24 tokens after input_ids) and greedy_gap (best minus second logit at
each); of an embedding model input_ids, last_hidden_state [T, H] and embedding; of a reranker input_ids, token_type_ids
and score. Needs the packages torch, transformers and safetensors; the project's own build and tests need none of them.
tests/engine/transformers_test.cpp compares.
"""

import argparse
import json
import pathlib
import sys
import traceback

TOKENS, GREEDY, VOCABULARY = 40, 24, 96
SPECIAL = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
ENCODER = SPECIAL | {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                     "max_position_embeddings": 256}
DECODER = ENCODER | {"num_key_value_heads": 2}
GPT2 = SPECIAL | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, "pad_token_id": None}
GEMMA = {"head_dim": 8, "query_pre_attn_scalar": 12, "sliding_window": 8, "num_hidden_layers": 3,
         "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}


def rope(kind="default", theta=10000.0, **parameters):
    return {"rope_type": kind, "rope_theta": theta} | parameters


def gemma3_rope(**full):
    return {"sliding_attention": rope(), "full_attention": rope(**({"theta": 1000000.0} | full))}


def longrope(pairs, original, **parameters):
    short, long = ([1.0 + step * i for i in range(pairs)] for step in (0.07, 0.9))
    return {"original_max_position_embeddings": original, "sliding_window": None,
            "rope_parameters": rope("longrope", short_factor=short, long_factor=long,
                                    original_max_position_embeddings=original, **parameters)}


# Folder: model_type, settings, and for models without a language head what comes after the layers.
CASES = {
    "olmo2": ("olmo2", DECODER | {"rope_parameters": rope(theta=500000.0)}),
    "olmo2-bias": ("olmo2", DECODER | {"attention_bias": True, "tie_word_embeddings": True, "num_key_value_heads": 4}),
    "llama-linear": ("llama", DECODER | {"rope_parameters": rope("linear", factor=4.0)}),
    "llama-yarn": ("llama", DECODER | {"rope_parameters": rope("yarn", factor=4.0, original_max_position_embeddings=64)}),
    "llama-bias": ("llama", DECODER | {"attention_bias": True, "mlp_bias": True, "head_dim": 12}),
    "qwen2-window": ("qwen2", DECODER | {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1,
                                         "num_hidden_layers": 3}),
    "qwen3-bias-yarn": ("qwen3", DECODER | {"head_dim": 16, "attention_bias": True, "tie_word_embeddings": True,
                                            "rope_parameters": rope("yarn", theta=1000000.0, factor=4.0,
                                                                    original_max_position_embeddings=64)}),
    "qwen3-moe-all": ("qwen3_moe", DECODER | {"head_dim": 8, "num_local_experts": 6, "num_experts_per_tok": 3,
                                              "moe_intermediate_size": 16, "mlp_only_layers": [],
                                              "norm_topk_prob": True}),
    "qwen3-moe-sparse": ("qwen3_moe", DECODER | {"head_dim": 8, "num_local_experts": 6, "num_experts_per_tok": 3,
                                                 "moe_intermediate_size": 16, "decoder_sparse_step": 2,
                                                 "mlp_only_layers": [], "norm_topk_prob": False}),
    "mixtral-window": ("mixtral", DECODER | {"sliding_window": 8, "num_local_experts": 6, "num_experts_per_tok": 3,
                                             "intermediate_size": 16}),
    "gemma2-plain": ("gemma2", DECODER | GEMMA | {"attention_bias": True, "attn_logit_softcapping": None,
                                                  "final_logit_softcapping": None}),
    "gemma3-linear": ("gemma3_text", DECODER | GEMMA | {"rope_parameters": gemma3_rope(kind="linear", factor=8.0)}),
    "gemma3-yarn": ("gemma3_text", DECODER | GEMMA | {
        "rope_parameters": gemma3_rope(kind="yarn", factor=8.0, original_max_position_embeddings=32)}),
    "phi3-longrope-short": ("phi3", DECODER | {"max_position_embeddings": 512} | longrope(4, 128)),
    "phi4-mini": ("phi3", DECODER | {"tie_word_embeddings": True} | longrope(3, 32, partial_rotary_factor=0.75)),
    "gpt2-erf": ("gpt2", GPT2 | {"activation_function": "gelu"}),
    "lfm2-adjusted": ("lfm2", DECODER | {"intermediate_size": 96, "block_auto_adjust_ff_dim": True,
                                         "block_multiple_of": 16, "conv_L_cache": 4, "num_hidden_layers": 3,
                                         "layer_types": ["conv", "full_attention", "conv"]}),
    "bert-first": ("bert", ENCODER, {"pooling": "cls_token", "normalize": True}),
    "bert-mean": ("bert", ENCODER | {"hidden_act": "gelu_new"}, {"pooling": "mean_tokens", "normalize": False}),
    "bert-reranker": ("bert", ENCODER | {"num_labels": 1}, {"score": True}),
    "qwen3-embedding": ("qwen3", DECODER | {"head_dim": 16}, {"pooling": "lasttoken", "normalize": True}),
    "embeddinggemma": ("gemma3_text", DECODER | GEMMA | {"use_bidirectional_attention": True,
                                                         "rope_parameters": gemma3_rope()},
                       {"pooling": "mean_tokens", "dense": [48, 32], "normalize": True}),
}


def auto_class(after):
    import transformers
    if not after:
        return transformers.AutoModelForCausalLM
    return transformers.AutoModelForSequenceClassification if "score" in after else transformers.AutoModel


def save_model(folder, model_type, settings, after):
    """Random weights that matter: as they come they are so small that layers hardly do, and norms are exactly 1."""
    import torch
    from transformers import AutoConfig
    config = AutoConfig.for_model(model_type, **settings)
    model = auto_class(after).from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            mean = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
            weight.copy_(torch.randn_like(weight) * 0.2 + mean)
    model.save_pretrained(folder)
    # Some configurations change a setting when they are made and would change it again when they are read.
    path = folder / "config.json"
    saved = json.loads(path.read_text())
    if "sliding_window" in settings:
        saved["sliding_window"] = settings["sliding_window"]
    path.write_text(json.dumps(saved, indent=2, sort_keys=True) + "\n")


def save_modules(folder, after, width):
    """The files by which sentence-transformers says how rows become a vector; returns the dense layers."""
    import torch
    from safetensors.torch import save_file
    package = "sentence_transformers.models."
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
    pooling = {f"pooling_mode_{mode}": mode == after["pooling"] for mode in modes}
    pooling |= {"word_embedding_dimension": width, "include_prompt": True}
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling, indent=2) + "\n")
    layers = []
    for out in after.get("dense", []):
        name = f"{len(modules)}_Dense"
        modules.append((name, "Dense"))
        (folder / name).mkdir(exist_ok=True)
        layers.append(torch.randn(out, width) * 0.2)
        dense = {"in_features": width, "out_features": out, "bias": False,
                 "activation_function": "torch.nn.modules.linear.Identity"}
        (folder / name / "config.json").write_text(json.dumps(dense, indent=2) + "\n")
        save_file({"linear.weight": layers[-1]}, folder / name / "model.safetensors")
        width = out
    if after["normalize"]:
        modules.append((f"{len(modules)}_Normalize", "Normalize"))
    listed = [{"idx": i, "name": str(i), "path": path, "type": package + kind} for i, (path, kind) in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps(listed, indent=2) + "\n")
    return layers


def decoder_answers(model, ids):
    import torch
    tokens, greedy, gaps = ids.tolist(), [], []
    for _ in range(GREEDY):
        best = model(torch.tensor([tokens]), use_cache=False).logits[0, -1].topk(2)
        greedy.append(best.indices[0].item())
        gaps.append((best.values[0] - best.values[1]).item())
        tokens.append(greedy[-1])
    return {"logits": model(ids[None], use_cache=False).logits[0], "greedy_gap": torch.tensor(gaps),
            "greedy_ids": torch.tensor(greedy, dtype=torch.int32)}


def embedding_answers(model, ids, after, layers):
    import torch
    rows = model(ids[None]).last_hidden_state[0]
    vector = {"cls_token": rows[0], "lasttoken": rows[-1], "mean_tokens": rows.mean(0)}[after["pooling"]]
    for layer in layers:
        vector = layer @ vector
    if after["normalize"]:
        vector = torch.nn.functional.normalize(vector, dim=0)
    return {"last_hidden_state": rows, "embedding": vector}


def make(folder, model_type, settings, after=None):
    import torch
    from safetensors.torch import save_file
    import transformers
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    save_model(folder, model_type, settings, after)
    layers = save_modules(folder, after, settings["hidden_size"]) if after and "pooling" in after else []
    model = auto_class(after).from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    ids = torch.randint(3, VOCABULARY, (TOKENS,))
    answers = {"input_ids": ids.to(torch.int32)}
    with torch.no_grad():
        if not after:
            answers |= decoder_answers(model, ids)
        elif "score" in after:
            types = (torch.arange(TOKENS) >= TOKENS // 3).long()
            answers |= {"token_type_ids": types.to(torch.int32),
                        "score": model(ids[None], token_type_ids=types[None]).logits[0]}
        else:
            answers |= embedding_answers(model, ids, after, layers)
    versions = {"transformers": transformers.__version__, "torch": torch.__version__}
    save_file({name: value.contiguous() for name, value in answers.items()}, folder / "expected.safetensors", versions)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="cases: " + ", ".join(CASES))
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(CASES)}")
    try:
        import safetensors, torch, transformers  # noqa: F401
    except ImportError as missing:
        sys.exit(f"{missing}; install torch, transformers and safetensors")
    failed = []
    for case in arguments.cases or CASES:
        try:
            make(arguments.output / case, *CASES[case])
            size = sum(file.stat().st_size for file in (arguments.output / case).rglob("*") if file.is_file())
            print(f"{case}: {size} bytes", flush=True)
        except Exception:  # one case that this version of transformers cannot make does not cost the others
            traceback.print_exc()
            failed.append(case)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
