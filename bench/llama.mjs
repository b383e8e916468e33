// llama.mjs FOLDER MODEL.gguf PROMPT GENERATED THREADS: tokens a second of llama.cpp (its library in FOLDER), as JSON: a
// prompt of PROMPT tokens as one batch, then GENERATED tokens one by one into an empty cache; each once to warm up.
import { createRequire } from 'node:module';
import path from 'node:path';

const [folder, file, ...numbers] = process.argv.slice(2);
const [prompt, generated, threads] = numbers.map(Number);
const llama = createRequire(import.meta.url)(path.join(folder, 'llama-addon.node'));
llama.setLogger((level, message) => { if (level <= 2) process.stderr.write(message); });
llama.loadBackends();
llama.loadBackends(folder);
await llama.init();
const model = new llama.AddonModel(file, { addonExports: llama, gpuLayers: 0, useMmap: true, useMlock: false });
if (!(await model.init())) process.exit(1);
const context = new llama.AddonContext(model, {
  contextSize: Math.max(prompt, generated) + 32, batchSize: Math.max(prompt, 32), sequences: 1, threads });
if (!(await context.init())) process.exit(1);

async function decode(position, count) {
  const tokens = Uint32Array.from({ length: count }, (_, i) => (i + position) * 7919 % 30000 + 1);
  context.initBatch(count);
  context.addToBatch(0, position, tokens, Uint32Array.of(count - 1));
  await context.decodeBatch();
}

/** Tokens a second of `work`, which puts `count` tokens into an empty cache. */
async function rate(count, work) {
  context.disposeSequence(0);
  const start = process.hrtime.bigint();
  await work();
  return count / (Number(process.hrtime.bigint() - start) * 1e-9);
}

const prefill = () => rate(prompt, () => decode(0, prompt));
const oneByOne = (count) => rate(count, async () => { for (let i = 0; i < count; i++) await decode(i, 1); });
await prefill();
const promptRate = await prefill();
await oneByOne(2);
console.log(JSON.stringify({ prompt: promptRate, decode: await oneByOne(generated) }));
process.exit(0);
