// components.mjs TOKENIZE_LINES PACKAGES [COUNT]: COUNT random tokenizers, made of random normalizers, pre-tokenizers,
// added tokens, models, post-processors and decoders, compared with Hugging Face's on random strings and ids.
// The byte model shows everything: each character of a word but the first is preceded by "##", so that ids spell both
// the normalized text and the borders of its words.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { makeRandom, makeString } from './strings.mjs';

const [program, packages, count = '400'] = process.argv.slice(2);
const { Tokenizer } = createRequire(import.meta.url)(path.join(packages, 'tokenizers'));

const random = makeRandom(77);
const pick = (list) => list[Math.floor(random() * list.length)];
const chance = (probability) => random() < probability;
const maybe = (make, probability = 0.6) => (chance(probability) ? make() : null);
const several = (make) => Array.from({ length: 1 + Math.floor(random() * 3) }, make);

const behavior = () => pick(['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous']);
const regexes = ['\\s+', '\\p{L}+', '[^\\s\\p{L}\\p{N}]+', '\\d{1,3}+', "(?i:'s|'t|'re)", '[[:upper:]]+|[[:digit:]]', 'a|e|i', '\\w+|\\W',
  '\\b', '(?=\\d{3})', '[\\p{L}&&[^a-z]]+', '[^a-c&&[a-z]]', ' ?[^(\\s|[.,!?…。，、।۔،])]+', '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+', '.', '^.', '\\s+$', '\\p{Han}+',
  'x{,2}', '(?m:.)', '\\h+', '\\H', '[\\h]', '\\u4e2d|\\x41', '(a|b)\\1', '(?<=\\s)\\S', 'l{2}', '\\p{^L}', '\\R'];
// Replacing an empty match makes Hugging Face's library abort the process.
const solid = regexes.filter((regex) => !['\\b', '(?=\\d{3})', 'x{,2}'].includes(regex));
const pattern = (choices) => (chance(0.4) ? { String: pick([' ', 'a', "'s", '.', '▁', '\n', '##', 'll']) } : { Regex: pick(choices) });

const normalizers = [
  () => ({ type: pick(['NFC', 'NFD', 'NFKC', 'NFKD', 'Lowercase', 'StripAccents', 'Nmt']) }),
  () => ({ type: 'Strip', strip_left: chance(0.5), strip_right: chance(0.5) }),
  () => ({ type: 'Prepend', prepend: pick(['▁', 'x ', ' ']) }),
  () => ({ type: 'Replace', pattern: pattern(solid), content: pick(['', '▁', ' ', 'é', 'ab']) }),
  () => ({ type: 'BertNormalizer', clean_text: chance(0.5), handle_chinese_chars: chance(0.5), strip_accents: pick([null, true, false]), lowercase: chance(0.5) }),
];
const normalizer = () => (chance(0.4) ? { type: 'Sequence', normalizers: several(() => pick(normalizers)()) } : pick(normalizers)());

const preTokenizers = [
  () => ({ type: pick(['Whitespace', 'WhitespaceSplit', 'BertPreTokenizer']) }),
  () => ({ type: 'Punctuation', behavior: behavior() }),
  () => ({ type: 'Digits', individual_digits: chance(0.5) }),
  () => ({ type: 'CharDelimiterSplit', delimiter: pick([' ', 'a', '.']) }),
  () => ({ type: 'FixedLength', length: pick([1, 2, 5]) }),
  () => ({ type: 'Split', pattern: pattern(regexes), behavior: behavior(), invert: chance(0.3) }),
  () => ({ type: 'Metaspace', replacement: '▁', prepend_scheme: pick(['always', 'first', 'never']), split: chance(0.5) }),
  () => ({ type: 'ByteLevel', add_prefix_space: chance(0.5), trim_offsets: true, use_regex: chance(0.5) }),
];
// Where a normalizer inserts text before the first character, Hugging Face's library takes the pieces after it for the
// start as well; here only the first piece is. So "first" goes without a normalizer.
const preTokenizer = () => (chance(0.4) ? { type: 'Sequence', pretokenizers: several(() => pick(preTokenizers)()) } : pick(preTokenizers)());

const byteTokens = Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`, i]));

const models = [
  () => ({ type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: '##', end_of_word_suffix: null, fuse_unk: false, byte_fallback: true, ignore_merges: false, vocab: byteTokens, merges: [] }),
  () => ({ type: 'BPE', dropout: null, unk_token: '<unk>', continuing_subword_prefix: null, end_of_word_suffix: pick([null, '</w>']), fuse_unk: chance(0.5), byte_fallback: false, ignore_merges: chance(0.5),
    vocab: { '<unk>': 0, a: 1, b: 2, ab: 3, abab: 4, '▁': 5, '▁a': 6, l: 7, ll: 8, lll: 9, 'Ġ': 10, 'Ġa': 11, e: 12, le: 13, 'a</w>': 14, 'l</w>': 15, 'el</w>': 16, aba: 17, '.': 18 },
    merges: [['l', 'l'], ['a', 'b'], ['ab', 'ab'], ['▁', 'a'], ['Ġ', 'a'], ['l', 'e'], ['ll', 'l'], ['e', 'l</w>'], ['ab', 'a']] }),
  () => ({ type: 'WordLevel', unk_token: '[UNK]', vocab: { '[UNK]': 0, a: 1, Hello: 2, the: 3, '.': 4, '▁the': 5, 'Ġthe': 6 } }),
  () => ({ type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: pick([5, 100]),
    vocab: { '[UNK]': 0, a: 1, '##a': 2, H: 3, he: 4, '##llo': 5, '##l': 6, '##o': 7, w: 8, '##orld': 9, '.': 10, '##e': 11, '中': 12, e: 13 } }),
  () => ({ type: 'Unigram', unk_id: 0, byte_fallback: false,
    vocab: [['<unk>', 0], ['▁', -2], ['a', -3], ['b', -3.5], ['ab', -4], ['▁the', -3.25], ['the', -4.5], ['l', -3], ['ll', -5], ['el', -6], ['e', -4], ['o', -4], ['Hello', -9], ['.', -3], ['▁▁', -3], ['中', -8]] }),
  () => ({ type: 'Unigram', unk_id: 0, byte_fallback: true, vocab: [['<unk>', 0], ['a', -3], ['▁', -2], ['the', -3], ...Object.keys(byteTokens).map((token) => [token, -20])] }),
];

// Hugging Face's library aborts the process where a stripped space belongs to another token, and for some normalizers with
// normalized tokens; so neither is tried.
const flags = (strips) => ({ single_word: chance(0.3), lstrip: strips && chance(0.5), rstrip: strips && chance(0.5), normalized: chance(0.5), special: chance(0.5) });
const contents = ['<s>', '[MASK]', 'Hello', ' the', 'a', 'll', 'É', 'e\u0301', '  ', '\n', "n't", '<|im_end|>', 'the', 'ab', '.'];
function addedTokens(normalizer) {
  const strips = chance(0.5);
  const chosen = contents.filter((content) => chance(0.2) && !(strips && /^\s|\s$/.test(content)));
  return chosen.map((content) => ({ id: 0, content, ...flags(strips), ...(normalizer === null ? {} : { normalized: false }) }));
}

const decoders = [
  () => ({ type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true }),
  () => ({ type: 'WordPiece', prefix: '##', cleanup: chance(0.5) }),
  () => ({ type: 'Metaspace', replacement: '▁', prepend_scheme: pick(['always', 'first', 'never']), split: true }),
  () => ({ type: 'Sequence', decoders: [{ type: 'Replace', pattern: { String: '▁' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' }, { type: 'Strip', content: ' ', start: pick([0, 1, 2]), stop: 0 }] }),
  () => ({ type: 'Sequence', decoders: [{ type: 'ByteFallback' }, { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true }] }),
  () => ({ type: 'Strip', content: pick([' ', '▁', '#']), start: pick([0, 1, 3]), stop: 0 }),
];

function postProcessor(vocabulary) {
  const [first, second] = [0, 1].map(() => pick(Object.entries(vocabulary)));
  return pick([
    { type: 'TemplateProcessing', single: [{ SpecialToken: { id: first[0], type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }, { SpecialToken: { id: second[0], type_id: 0 } }],
      pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
      special_tokens: Object.fromEntries([first, second].map(([token, id]) => [token, { id: token, ids: [id], tokens: [token] }])) },
    { type: 'BertProcessing', sep: second, cls: first },
    { type: 'RobertaProcessing', sep: second, cls: first, trim_offsets: true, add_prefix_space: false },
  ]);
}

/** The vocabulary of a model as token → id. */
function vocabularyOf(model) {
  return Array.isArray(model.vocab) ? Object.fromEntries(model.vocab.map(([token], id) => [token, id])) : model.vocab;
}

function makeTokenizer() {
  const model = pick(models)();
  const vocabulary = vocabularyOf(model);
  const size = Object.keys(vocabulary).length;
  const splitter = maybe(preTokenizer, 0.8);
  const chosen = JSON.stringify(splitter).includes('"first"') ? null : maybe(normalizer);
  const added = addedTokens(chosen);
  let next = size;
  for (const token of added) token.id = vocabulary[token.content] ?? next++;
  return { version: '1.0', truncation: null, padding: null, added_tokens: added, normalizer: chosen, pre_tokenizer: splitter,
    post_processor: maybe(() => postProcessor(vocabulary), 0.3), decoder: maybe(() => pick(decoders)(), 0.8), model };
}

/** Hugging Face's answer, or null where it fails. */
async function expected(tokenizer, question) {
  try {
    const encoding = Array.isArray(question) ? null : await tokenizer.encode(question);
    const ids = encoding?.getIds() ?? question;
    const answer = { text: await tokenizer.decode(ids, true), all: await tokenizer.decode(ids, false) };
    if (!encoding) return answer;
    return { ...answer, ids, plain: (await tokenizer.encode(question, null, { addSpecialTokens: false })).getIds() };
  } catch {
    return null;
  }
}

const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'candor-components-')), 'tokenizer.json');
let different = 0;
let compared = 0;
for (let round = 0; round < Number(count); ++round) {
  const source = JSON.stringify(makeTokenizer());
  fs.writeFileSync(file, source);
  const tokenizer = Tokenizer.fromString(source);
  const size = tokenizer.getVocabSize();
  const questions = [
    ...Array.from({ length: 25 }, () => makeString(random, contents)),
    ...Array.from({ length: 10 }, () => several(() => Array.from({ length: 6 }, () => Math.floor(random() * size))).flat()),
  ];
  const answer = spawnSync(program, [file], { input: questions.map((question) => JSON.stringify(question)).join('\n') + '\n', encoding: 'utf8', maxBuffer: 1 << 28 });
  const lines = answer.stdout.trimEnd().split('\n');
  for (const [i, question] of questions.entries()) {
    const want = await expected(tokenizer, question);
    const have = answer.status === 0 ? JSON.parse(lines[i]) : { error: answer.stderr };
    ++compared;
    if (want === null ? have.error : Object.keys(want).every((key) => JSON.stringify(have[key]) === JSON.stringify(want[key]))) continue;
    if (++different > 5) continue;
    console.log(`${source.replace(/("<0x..>":\d+,?)+/g, '<bytes>')}\n  ${JSON.stringify(question).slice(0, 200)}`);
    console.log(`  here:         ${JSON.stringify(have).slice(0, 500)}\n  Hugging Face: ${JSON.stringify(want).slice(0, 500)}`);
  }
}
fs.rmSync(path.dirname(file), { recursive: true });
console.log(`components: ${compared} comparisons, ${different} differ`);
process.exit(different === 0 ? 0 : 1);
