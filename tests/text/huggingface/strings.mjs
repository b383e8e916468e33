// Test strings for comparing tokenizers: many scripts, emoji, combining marks, control characters, white space, numbers,
// code, long runs, and text that looks like special tokens. The same seed gives the same strings.

/** A seeded generator of uniform numbers in [0, 1) (xorshift32). */
export function makeRandom(seed) {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}

// First and last code point of stretches that have been assigned since Unicode 13 or longer.
const scripts = [
  [0x20, 0x7e], [0xa1, 0xff], [0x100, 0x17f], [0x180, 0x24f], [0x250, 0x2af], [0x370, 0x377], [0x391, 0x3a1],
  [0x3a3, 0x3ff], [0x400, 0x4ff], [0x531, 0x556], [0x561, 0x586], [0x5d0, 0x5ea], [0x621, 0x64a], [0x660, 0x669],
  [0x671, 0x6d3], [0x710, 0x72f], [0x905, 0x939], [0x966, 0x96f], [0x993, 0x9a8], [0xa05, 0xa0a], [0xa85, 0xa8d],
  [0xb05, 0xb0c], [0xb85, 0xb8a], [0xc05, 0xc0c], [0xc85, 0xc8c], [0xd05, 0xd0c], [0xe01, 0xe3a], [0xe40, 0xe5b],
  [0xe81, 0xe82], [0xf00, 0xf47], [0x1000, 0x1049], [0x10a0, 0x10c5], [0x10d0, 0x10ff], [0x1100, 0x11ff],
  [0x1200, 0x1248], [0x13a0, 0x13f5], [0x1401, 0x166c], [0x1780, 0x17b3], [0x1820, 0x1878], [0x1c90, 0x1cba],
  [0x1d00, 0x1dbf], [0x1e00, 0x1f15], [0x2010, 0x2027], [0x2030, 0x205e], [0x2070, 0x2071], [0x2074, 0x208e],
  [0x20a0, 0x20bf], [0x2100, 0x218b], [0x2190, 0x23ff], [0x2460, 0x24ff], [0x2500, 0x27bf], [0x2c60, 0x2c7f],
  [0x3001, 0x303f], [0x3041, 0x3096], [0x30a1, 0x30ff], [0x3105, 0x312f], [0x3131, 0x318e], [0x3220, 0x3247],
  [0x3400, 0x4db5], [0x4e00, 0x9fa5], [0xa000, 0xa48c], [0xa4d0, 0xa4f7], [0xa722, 0xa78e], [0xac00, 0xd7a3],
  [0xf900, 0xfa6d], [0xfb00, 0xfb06], [0xfb1d, 0xfb36], [0xfe30, 0xfe4f], [0xff01, 0xff5e], [0xff61, 0xff9f],
  [0x10000, 0x1000b], [0x10400, 0x1049d], [0x12000, 0x12399], [0x1d400, 0x1d454], [0x1d7ce, 0x1d7ff],
  [0x1f100, 0x1f10c], [0x1f300, 0x1f5ff], [0x1f600, 0x1f64f], [0x1f900, 0x1f978], [0x20000, 0x20100],
  [0x2f800, 0x2f810],
];
const marks = [[0x300, 0x34e], [0x350, 0x36f], [0x483, 0x487], [0x591, 0x5bd], [0x64b, 0x65f], [0x93a, 0x94f],
  [0xe34, 0xe3a], [0x1ab0, 0x1abd], [0x1dc0, 0x1df5], [0x20d0, 0x20f0], [0x302a, 0x302f], [0x3099, 0x309a],
  [0xfe00, 0xfe0f], [0xfe20, 0xfe2f]];
const spaces = [' ', ' ', ' ', '  ', '   ', '\n', '\n\n', '\r\n', '\t', '\t\t', ' \n', '\n ', '\u00a0', '\u2003', '\u3000',
  '\u2028', '\u0085', '\u000b', '\u000c', '\u1680', '\u202f', '\u200b', '\u180e', '\ufeff', '      ', '\n\n\n\n', ' \t \n'];
const emoji = ['😀', '👍🏽', '👨‍👩‍👧‍👦', '🏳️‍🌈', '🇩🇪', '🇯🇵🇫🇷', '1️⃣', '❤️', '☺', '🧑🏿‍🚀', '🫠', '#️⃣', '👩‍❤️‍💋‍👨'];
const contractions = ["'s", "'S", "'t", "'re", "'VE", "'m", "'ll", "'Ll", "'d", '’s', "'ſ", "''s", "n't", "'", "I'm", "you'RE"];
const snippets = ['Hello', 'world', ' the', ' of', 'DON\'T', 'iPhone', 'camelCaseWord', 'snake_case', 'http://a.b/c?d=e&f=%20',
  'x = y[0] + {"k": 1.5e-3};', '<div class="a">', '</div>', 'def f(x):\n    return x', '/* c */', '// d', '#include <x>',
  '$$\\alpha_{i}$$', 'Übergröße', 'naïve', 'Ünïcödé', 'İstanbul', 'ΑΣ', 'straße', 'ﬁne', '½', '①②', '٣٤٥', '१२३', '𝟙𝟚', 'Ⅷ',
  '你好，世界。', 'こんにちは', 'カタカナ', '안녕하세요', 'Привет, мир!', 'مرحبا بالعالم', 'שלום', 'สวัสดี', 'नमस्ते', 'ǅ', 'ŀ', 'ﷺ', '㎏', 'e\u0301',
  'a\u0323\u0307', '\u1112\u1161\u11ab', 'don’t', '“quoted”', '…', '—', '--', '...', '!!!', '?!', '@user', '#tag', '100%',
  '$5.00', '3.14159', '1,000,000', '2024-01-31', '0xDEADBEEF', 'v1.2.3', 'C++20', 'A.B.C.'];
const lookAlikes = ['<|', '|>', '<|im_start', '<|IM_END|>', '<|im_end|', '<s>', '</s>', '<unk>', '<pad>', '<bos>', '<eos>',
  '[CLS]', '[SEP]', '[MASK]', '[UNK]', '[PAD]', '[mask]', '##', '##ing', '▁', '▁▁', '▁the', '<0x0A>', '<0xFF>', '<0x0a>', 'Ġ', 'ĠĠ',
  'Ċ', '<|endoftext|>', '<|begin_of_text|>', '<|eot_id|>', '<start_of_turn>', '<end_of_turn>', '<think>', '</think>',
  '<unused7>', '<|reserved_special_token_0|>', '<image_soft_token>', '<|im_end|>', '<tool_call>'];

function pick(random, list) {
  return list[Math.floor(random() * list.length)];
}

function between(random, [first, last]) {
  return String.fromCodePoint(first + Math.floor(random() * (last - first + 1)));
}

function repeated(random, length, make) {
  let text = '';
  for (let i = 0; i < length; ++i) text += make();
  return text;
}

function control(random) {
  const c = Math.floor(random() * 0x100);
  if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return String.fromCharCode(c);
  return pick(random, ['\ufffd', '\ufffe', '\ufdd0', '\u200d', '\u200c', '\u200e', '\u202e', '\u2060', '\u00ad', '\ue000', '\u{10ffff}', '\u{e0001}']);
}

function longRun(random) {
  const length = 1 + Math.floor(10 ** (1 + random() * 2.3));
  const unit = pick(random, ['a', ' ', '\n', '=', '-', '0', 'ab', 'é', '中', '😀', '▁', '\t', '. ', "'s", ' a', '\u0301', '\r\n']);
  return unit.repeat(length);
}

/** One string of the given kind of mixture. `special` are the vocabulary's own special tokens. */
export function makeString(random, special) {
  const parts = 1 + Math.floor(random() ** 2 * 14);
  return repeated(random, parts, () => {
    const kind = random();
    if (kind < 0.2) return pick(random, snippets);
    if (kind < 0.35) {
      const script = pick(random, scripts);
      return repeated(random, 1 + Math.floor(random() * 8), () => between(random, script));
    }
    if (kind < 0.55) return pick(random, spaces);
    if (kind < 0.62) return between(random, pick(random, scripts)) + repeated(random, 1 + Math.floor(random() * 3), () => between(random, pick(random, marks)));
    if (kind < 0.68) return pick(random, emoji);
    if (kind < 0.74) return pick(random, contractions);
    if (kind < 0.79) return repeated(random, 1 + Math.floor(random() * 7), () => pick(random, [...'0123456789']));
    if (kind < 0.84) return control(random);
    if (kind < 0.9) return pick(random, lookAlikes);
    if (kind < 0.94 && special.length > 0) return pick(random, special);
    if (kind < 0.955) return longRun(random);
    return repeated(random, 1 + Math.floor(random() * 5), () => pick(random, [...'.,;:!?()[]{}<>|/\\@#$%^&*+-=_~`"\'']));
  });
}

/** `count` strings. */
export function makeStrings(seed, count, special) {
  const random = makeRandom(seed);
  const strings = ['', ' ', '  ', '\n', 'a'];
  while (strings.length < count) strings.push(makeString(random, special));
  return strings;
}
