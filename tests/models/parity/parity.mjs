// parity.mjs CANDOR PACKAGES MARKDOWN REFERENCES...: what `run` describes. MARKDOWN may be empty.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { editSafetensors, readSafetensors } from './safetensors.mjs';

const [candor, packages, markdown, ...references] = process.argv.slice(2);
const here = path.dirname(new URL(import.meta.url).pathname);
const library = path.join(packages, '@node-llama-cpp/linux-x64/bins/linux-x64');
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'candor-parity-'));

class Failed extends Error {
  constructor(message, status) {
    super(message);
    this.unsupported = status === 5;  // the program's word for what it has no way to do
  }
}

/** Runs a program; throws with the message it ends with. */
function call(program, args, input = '') {
  const { status, signal, stderr } = spawnSync(program, args, { input, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (status === 0) return;
  const lines = stderr.trim().split('\n').filter((line) => !line.startsWith('    at '));
  const said = lines.find((line) => /error|ASSERT|fail|missing/i.test(line)) ?? lines.at(-1) ?? '';
  const plain = [scratch, ...references].reduce((text, folder) => text.replaceAll(`${folder}/`, ''), said);
  throw new Failed(plain.replace(/^candor: |^\S*\.cpp:\d+: /, '').trim() || `ended by ${signal ?? status}`, status);
}

function candorLogits(model, tokens, options = []) {
  const out = path.join(scratch, 'logits.safetensors');
  fs.rmSync(out, { force: true });
  call(candor, ['logits', model, '--tokens', tokens.join(','), '--out', out, '--context', `${tokens.length}`, '--threads', '1', ...options]);
  return readSafetensors(out).logits.data;
}

function llamaLogits(file, tokens) {
  const out = path.join(scratch, 'llama.bin');
  call(process.execPath, [path.join(here, 'llama.mjs'), library, file, out], JSON.stringify([...tokens]));
  return new Float32Array(Uint8Array.from(fs.readFileSync(out)).buffer);
}

/** The largest difference over the first `rows`, relative to the largest logit wanted, and the greedy tokens that agree. */
function compare(expected, logits) {
  const [positions, vocabulary] = expected.logits.shape;
  const wanted = expected.logits.data;
  const scale = wanted.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const errors = [];  // the largest of each row
  for (let row = 0; row < positions; ++row) {
    let most = 0;
    for (let i = row * vocabulary; i < (row + 1) * vocabulary; ++i) most = Math.max(most, Math.abs(logits[i] - wanted[i]));
    errors.push(most / scale);
  }
  let agree = 0, ties = 0;
  const greedy = expected.greedy_ids.data;
  for (let i = 0; i < greedy.length; ++i) {
    const row = logits.subarray((positions - 1 + i) * vocabulary, (positions + i) * vocabulary);
    let best = 0;
    for (let token = 1; token < vocabulary; ++token) if (row[token] > row[best]) best = token;
    if (best === greedy[i]) ++agree;
    else if (expected.greedy_gap.data[i] < 0.002) ++ties;
  }
  return { errors, error: Math.max(...errors), agree, ties, of: greedy.length };
}

const short = (error) => error.toExponential(1).replace('+', '');
const tokensOf = ({ agree, ties, of }) => (agree === of ? '' : `, ${agree} of ${of}${ties > 0 ? `, ${ties} a tie` : ''}`);
const result = (found) => short(found.error) + tokensOf(found);
const faults = [];

/** One cell: what `compute` gives, or why it does not. */
function cell(expected, compute) {
  try {
    return compare(expected, compute());
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    return { refused: error.message, unsupported: error.unsupported };
  }
}

/** Notes what is off by more than `bound` or has another greedy token, or what was refused. */
function check(model, column, found, bound) {
  const fault = found.refused ?? (found.error <= bound && found.agree + found.ties === found.of ? null : result(found));
  if (fault !== null) faults.push(`${model}, ${column}: ${fault}`);
}

/** GGUF has no key for Gemma's query scale, which llama.cpp takes to be head_dim^-1/2: the same model with that scale, the
 * rest of it in the weights of the queries, or of their norm. */
function withUsualScale(folder, config) {
  const copy = path.join(scratch, `${path.basename(folder)}-scaled`);
  fs.mkdirSync(copy);
  fs.writeFileSync(path.join(copy, 'model.safetensors'), fs.readFileSync(path.join(folder, 'model.safetensors')));
  fs.writeFileSync(path.join(copy, 'config.json'), JSON.stringify({ ...config, query_pre_attn_scalar: config.head_dim }));
  const factor = Math.sqrt(config.head_dim / config.query_pre_attn_scalar);
  const normed = config.model_type !== 'gemma2';  // norms are stored less one
  editSafetensors(path.join(copy, 'model.safetensors'), (name, values) => {
    if (normed && name.endsWith('.q_norm.weight')) values.forEach((value, i) => (values[i] = (1 + value) * factor - 1));
    if (!normed && /\.q_proj\.(weight|bias)$/.test(name)) values.forEach((value, i) => (values[i] = value * factor));
  });
  return copy;
}

const precise = 2e-5;
const tabled = 2e-3;                              // llama.cpp's GELU is a table of float16
const windowless = new Set(['llama', 'phi3']);  // architectures in which llama.cpp has no window
const rows = [], notes = [];
const folders = references.filter((folder) => fs.existsSync(folder)).flatMap((folder) => fs.readdirSync(folder).sort().map((name) => path.join(folder, name)));
for (const folder of folders) {
  const model = path.basename(folder);
  const expected = readSafetensors(path.join(folder, 'expected.safetensors'));
  if (!expected.greedy_ids) continue;  // an encoder
  const config = JSON.parse(fs.readFileSync(path.join(folder, 'config.json'), 'utf8'));
  const tokens = [...expected.input_ids.data, ...expected.greedy_ids.data];
  const gguf = path.join(scratch, `${model}.gguf`);
  const half = path.join(scratch, `${model}-bf16`);
  const found = {
    float32: cell(expected, () => candorLogits(folder, tokens)),
    cache: cell(expected, () => candorLogits(folder, tokens, ['--session', 'kvcache.kvDtype=f16'])),
    weights: cell(expected, () => {
      // Only LongRoPE's factors are chosen by the context.
      const context = JSON.stringify(config).includes('"longrope"') ? ['--context', `${tokens.length}`] : [];
      call(candor, ['convert', folder, half, '--quant', 'bf16', ...context, '--no-golden', '--threads', '1']);
      return candorLogits(half, tokens);
    }),
    gguf: cell(expected, () => {
      call(candor, ['convert', folder, gguf, '--threads', '1']);
      return candorLogits(gguf, tokens);
    }),
  };
  check(model, 'float32', found.float32, precise);
  if (!found.gguf.unsupported) check(model, 'GGUF', found.gguf, precise);
  for (const column of ['cache', 'weights']) if (found[column].refused) check(model, column, found[column], Infinity);
  const architecture = fs.existsSync(gguf) ? /general\.architecture.{12}([a-z0-9-]+)/s.exec(fs.readFileSync(gguf, 'latin1').slice(0, 4096))?.[1] : '';
  // Where llama.cpp has no window, it can agree only on what a window does not hide.
  found.llama = fs.existsSync(gguf) ? cell(expected, () => {
    if (!config.query_pre_attn_scalar || config.query_pre_attn_scalar === config.head_dim) return llamaLogits(gguf, tokens);
    const scaled = path.join(scratch, `${model}-scaled.gguf`);
    call(candor, ['convert', withUsualScale(folder, config), scaled, '--threads', '1']);
    return llamaLogits(scaled, tokens);
  }) : { refused: '' };
  const text = (entry) => {
    if (entry.refused === undefined) return result(entry);
    if (!notes.includes(entry.refused)) notes.push(entry.refused);
    return `[${notes.indexOf(entry.refused) + 1}]`;
  };
  let llama = found.llama.refused === '' ? '' : text(found.llama);
  const window = windowless.has(architecture) ? config.sliding_window ?? 0 : 0;
  if (window > 0 && found.llama.errors) {
    found.llama = { error: Math.max(...found.llama.errors.slice(0, window)), agree: 0, ties: 0, of: 0 };
    llama = `${short(found.llama.error)} in the first ${window} positions`;
  }
  // llama.cpp chooses LongRoPE's factors by its own context, which is never below 256 positions, not by the text.
  const original = config.original_max_position_embeddings ?? Infinity;
  if (found.llama.errors && tokens.length <= original && original < 256) {
    found.llama = { refused: '' };
    llama = 'takes the long factors';
  }
  if (found.llama.refused !== '') check(model, 'llama.cpp', found.llama, tabled);
  rows.push([model, text(found.float32), text(found.cache), text(found.weights), architecture ?? '', text(found.gguf), llama]);
  console.log(rows.at(-1).join(' | '));
}
fs.rmSync(scratch, { recursive: true });

const head = ['model', 'float32', 'f16 KV cache', 'bf16 weights', 'GGUF architecture', 'float32 by GGUF', 'llama.cpp'];
const line = (cells) => `| ${cells.join(' | ')} |`;
const table = [line(head), line(head.map(() => '---')), ...rows.map(line), ...(notes.length > 0 ? [''] : []), ...notes.map((note, i) => `[${i + 1}] ${note}`)].join('\n');
if (markdown) fs.writeFileSync(markdown, `${table}\n`);
console.log(`\n${table}`);
for (const fault of faults) console.log(`not as it should be: ${fault}`);
process.exit(faults.length === 0 && rows.length > 0 ? 0 : 1);
