// Makes tokenizer.json out of a GGUF vocabulary (GPT-2's byte-level BPE and BERT's WordPiece), so that Hugging Face's
// library can read it.
import fs from 'node:fs';

/** The metadata of a GGUF file: key → value. */
export function readGguf(path) {
  const data = fs.readFileSync(path);
  let at = 4;
  const take = (size, read) => {
    const value = read(at);
    at += size;
    return value;
  };
  const u32 = () => take(4, (o) => data.readUInt32LE(o));
  const u64 = () => Number(take(8, (o) => data.readBigUInt64LE(o)));
  const string = () => take(0, () => {
    const size = u64();
    at += size;
    return data.toString('utf8', at - size, at);
  });
  const readers = {
    0: () => take(1, (o) => data.readUInt8(o)), 1: () => take(1, (o) => data.readInt8(o)),
    2: () => take(2, (o) => data.readUInt16LE(o)), 3: () => take(2, (o) => data.readInt16LE(o)),
    4: u32, 5: () => take(4, (o) => data.readInt32LE(o)), 6: () => take(4, (o) => data.readFloatLE(o)),
    7: () => take(1, (o) => data.readUInt8(o) !== 0), 8: string, 10: u64, 11: u64, 12: () => take(8, (o) => data.readDoubleLE(o)),
    9: () => {
      const type = u32();
      const count = u64();
      return Array.from({ length: count }, () => readers[type]());
    },
  };
  u32();
  u64();
  const metadata = {};
  for (let keys = u64(); keys > 0; --keys) {
    const key = string();
    metadata[key] = readers[u32()]();
  }
  return metadata;
}

function added(id, content) {
  return { id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
}

function gpt2(metadata) {
  const tokens = metadata['tokenizer.ggml.tokens'];
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
  return {
    added_tokens: [added(50256, '<|endoftext|>')],
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: { ...byteLevel, trim_offsets: false },
    decoder: byteLevel,
    model: { type: 'BPE', vocab: Object.fromEntries(tokens.map((token, id) => [token, id])), merges: metadata['tokenizer.ggml.merges'] },
  };
}

function bert(metadata) {
  const vocab = {};
  metadata['tokenizer.ggml.tokens'].forEach((token, id) => {
    const bracketed = token.startsWith('[') && token.endsWith(']');
    vocab[token.startsWith('▁') ? token.slice(1) : bracketed ? token : `##${token}`] = id;
  });
  return {
    added_tokens: ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].map((name) => added(vocab[name], name)),
    normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: { type: 'BertProcessing', sep: ['[SEP]', vocab['[SEP]']], cls: ['[CLS]', vocab['[CLS]']] },
    decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
    model: { type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 100, vocab },
  };
}

/** tokenizer.json, as text, for the vocabulary in a GGUF file. */
export function tokenizerJson(path) {
  const metadata = readGguf(path);
  const make = { gpt2, bert }[metadata['tokenizer.ggml.model']];
  return JSON.stringify({ version: '1.0', truncation: null, padding: null, ...make(metadata) });
}
