// Interprets a compiled system call filter as the kernel does.

interface Call {
  number: number;
  architecture: number;
  arguments?: readonly bigint[];
}

/** Resolves `allowed`, `killed`, or the error number returned for the call. */
export function runFilter(filter: Buffer, call: Call): 'allowed' | 'killed' | number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number >>> 0, 0);
  data.writeUInt32LE(call.architecture >>> 0, 4);
  for (const [at, value] of (call.arguments ?? []).entries()) data.writeBigUInt64LE(value, 16 + at * 8);

  let loaded = 0;
  for (let at = 0; at < filter.length / 8; at += 1) {
    const [code, value] = [filter.readUInt16LE(at * 8), filter.readUInt32LE(at * 8 + 4)];
    const jump = (holds: boolean): number => filter.readUInt8(at * 8 + (holds ? 2 : 3));
    if (code === 0x20) loaded = data.readUInt32LE(value);
    else if (code === 0x54) loaded = (loaded & value) >>> 0;
    else if (code === 0x15) at += jump(loaded === value);
    else if (code === 0x35) at += jump(loaded >= value);
    else if (code === 0x06) return outcomeOf(value);
    else throw new Error(`unknown instruction ${code}`);
  }
  throw new Error('the filter ends without a return');
}

function outcomeOf(value: number): 'allowed' | 'killed' | number {
  if (value === 0x7fff_0000) return 'allowed';
  return value === 0x8000_0000 ? 'killed' : value & 0xffff;
}
