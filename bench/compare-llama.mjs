// compare-llama.mjs CANDOR PACKAGES MODEL.gguf ROUNDS PROMPT GENERATED THREADS: see bench/compare-llama.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const [candor, packages, model, ...numbers] = process.argv.slice(2);
const [rounds, prompt, generated, threads] = numbers.map(Number);
const library = path.join(packages, '@node-llama-cpp/linux-x64/bins/linux-x64');
const llama = path.join(path.dirname(fileURLToPath(import.meta.url)), 'llama.mjs');
const run = (program, args) => JSON.parse(execFileSync(program, args.map(String), { maxBuffer: 1 << 26 }));

const results = { candor: { prompt: [], decode: [] }, llama: { prompt: [], decode: [] } };
const shares = [];
const measure = {
  candor() {
    const out = run(candor, ['bench', model, '-p', prompt, '-n', generated, '-r', 1, '--threads', threads, '--json']);
    results.candor.prompt.push(out.promptTokensPerSecond.median);
    results.candor.decode.push(out.decodeTokensPerSecond.median);
    shares.push(out.decodeTokensPerSecond.median * out.bytesPerToken / out.memoryBandwidth.median);
  },
  llama() {
    const out = run(process.execPath, [llama, library, model, prompt, generated, threads]);
    results.llama.prompt.push(out.prompt);
    results.llama.decode.push(out.decode);
  },
};
for (let round = 0; round < rounds; round++) {
  // Who goes first changes each round.
  for (const name of round % 2 ? ['llama', 'candor'] : ['candor', 'llama']) measure[name]();
  process.stderr.write(`\rround ${round + 1} of ${rounds}`);
}
process.stderr.write('\n');

const sorted = (values) => [...values].sort((a, b) => a - b);
const median = (values) => sorted(values)[Math.floor(values.length / 2)];
const spread = (values) => `${median(values).toFixed(1)} (${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)})`;
console.log(`${path.basename(model)}, ${threads} threads, ${rounds} rounds: tokens/s, median (lowest to highest)`);
for (const test of ['prompt', 'decode']) {
  const ratios = results.candor[test].map((value, i) => value / results.llama[test][i]);
  console.log(`${test.padEnd(6)} ${String(test === 'prompt' ? prompt : generated).padStart(4)}  ` +
    `Candor ${spread(results.candor[test])}  llama.cpp ${spread(results.llama[test])}  ratio ${median(ratios).toFixed(2)}`);
}
console.log(`decode reads ${(median(shares) * 100).toFixed(0)} % of the four-stream bandwidth measured in the same runs`);
