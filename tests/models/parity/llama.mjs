// llama.mjs FOLDER MODEL.gguf OUT: the logits that llama.cpp computes of the tokens on standard input (JSON), as float32
// [tokens, vocabulary] in OUT, with a KV cache of float32. FOLDER has its library. A program of its own, because llama.cpp
// ends the process where it cannot go on.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const [folder, file, out] = process.argv.slice(2);
const errors = 2;  // levels of messages: 2 is error, higher is less
const llama = createRequire(import.meta.url)(path.join(folder, 'llama-addon.node'));
llama.setLogger((level, message) => { if (level <= errors) process.stderr.write(message); });
llama.loadBackends();
llama.loadBackends(folder);
await llama.init();

const tokens = Uint32Array.from(JSON.parse(fs.readFileSync(0, 'utf8')));
const model = new llama.AddonModel(file, { addonExports: llama, gpuLayers: 0, useMmap: false, useMlock: false });
if (!(await model.init())) process.exit(1);
const float32 = 0;
const context = new llama.AddonContext(model, { contextSize: 256, batchSize: 256, sequences: 1, flashAttention: false,
  threads: 1, kvCacheKeyType: float32, kvCacheValueType: float32, swaFullCache: true });
if (!(await context.init())) process.exit(1);
context.initBatch(tokens.length);
const rows = context.addToBatch(0, 0, tokens, tokens.map((_, i) => i));
await context.decodeBatch();
const sampler = new llama.AddonSampler(model);
sampler.applyConfig({ temperature: 0 });
const logits = [];
for (const row of rows) {
  const pairs = (await context.sampleToken(row, sampler, false, false, true, false))[3];  // token, logit, …
  const values = new Float32Array(pairs.length / 2);
  for (let i = 0; i < pairs.length; i += 2) values[pairs[i]] = pairs[i + 1];
  logits.push(values);
}
fs.writeFileSync(out, Buffer.concat(logits.map((row) => Buffer.from(row.buffer))));
process.exit(0);
