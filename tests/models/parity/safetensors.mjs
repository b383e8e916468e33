// Reading safetensors files: an object of {shape, data}.
import fs from 'node:fs';

const arrays = { F32: Float32Array, I32: Int32Array };

export function readSafetensors(file) {
  const bytes = fs.readFileSync(file);
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
  delete header.__metadata__;
  const tensor = ({ dtype, shape, data_offsets: [begin, end] }) => {
    const copy = bytes.subarray(8 + length + begin, 8 + length + end).slice();  // aligned
    return { shape, data: new arrays[dtype](copy.buffer, copy.byteOffset, (end - begin) / 4) };
  };
  return Object.fromEntries(Object.entries(header).filter(([, entry]) => entry.dtype in arrays).map(([name, entry]) => [name, tensor(entry)]));
}

/** Changes float32 tensors of a file in place: `change(name, values)` may write to `values`. */
export function editSafetensors(file, change) {
  const bytes = fs.readFileSync(file);
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
  delete header.__metadata__;
  for (const [name, { data_offsets: [begin, end] }] of Object.entries(header)) {
    const stored = bytes.subarray(8 + length + begin, 8 + length + end);
    const copy = Uint8Array.from(stored);
    change(name, new Float32Array(copy.buffer));
    stored.set(copy);
  }
  fs.writeFileSync(file, bytes);
}
