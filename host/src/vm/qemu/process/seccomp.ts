// The jail's system call filter, in addition to QEMU's own: nothing inside may change its file size
// limit. Pure: classic BPF for the kernel.
import { DriverError } from '../../driver.ts';

/**
 * AUDIT_ARCH_* and the numbers of the two system calls that set limits, by Node's architecture
 * name.
 */
const NUMBERS = new Map([
  ['x64', { arch: 0xc000_003e, setrlimit: 160, prlimit64: 302 }],
  ['arm64', { arch: 0xc000_00b7, setrlimit: 164, prlimit64: 261 }],
]);

const RLIMIT_FSIZE = 1;
const EPERM = 1;
/** Numbers from here on use x86's x32 calling convention. */
const X32_BIT = 0x4000_0000;

const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const RETURN = 0x06;
const ALLOW = 0x7fff_0000;
const REFUSE = 0x0005_0000 | EPERM;
const END = 0x8000_0000;

/** Offsets in struct seccomp_data; for arguments, the lower half. */
const AT = { number: 0, arch: 4, firstArgument: 16, secondArgument: 24, thirdArgument: 32 } as const;

/**
 * Program for `bwrap --seccomp`: refuses to set RLIMIT_FSIZE, also for the caller itself; allows
 * reading it and everything else. Calls of another architecture kill the process: QEMU makes none.
 * Throws for an unknown architecture.
 */
export function fileSizeFilter(nodeArch: string): Buffer {
  const numbers = NUMBERS.get(nodeArch);
  if (numbers === undefined) throw new DriverError(`no system call filter is known for ${nodeArch}`);

  // Jump offsets count skipped instructions: [if true, if false].
  const program: [code: number, ifSo: number, ifNot: number, value: number][] = [
    [LOAD, 0, 0, AT.arch],
    [JUMP_IF_EQUAL, 1, 0, numbers.arch],
    [RETURN, 0, 0, END],
    [LOAD, 0, 0, AT.number],
    [JUMP_IF_AT_LEAST, 0, 1, X32_BIT],
    [RETURN, 0, 0, REFUSE],
    [JUMP_IF_EQUAL, 0, 2, numbers.setrlimit],
    [LOAD, 0, 0, AT.firstArgument],
    [JUMP_IF_EQUAL, 7, 8, RLIMIT_FSIZE],
    [JUMP_IF_EQUAL, 0, 7, numbers.prlimit64],
    [LOAD, 0, 0, AT.secondArgument],
    [JUMP_IF_EQUAL, 0, 5, RLIMIT_FSIZE],
    // Without new values the call only reads.
    [LOAD, 0, 0, AT.thirdArgument],
    [JUMP_IF_EQUAL, 0, 2, 0],
    [LOAD, 0, 0, AT.thirdArgument + 4],
    [JUMP_IF_EQUAL, 1, 0, 0],
    [RETURN, 0, 0, REFUSE],
    [RETURN, 0, 0, ALLOW],
  ];
  const bytes = Buffer.alloc(program.length * 8);
  for (const [at, [code, ifSo, ifNot, value]] of program.entries()) {
    bytes.writeUInt16LE(code, at * 8);
    bytes.writeUInt8(ifSo, at * 8 + 2);
    bytes.writeUInt8(ifNot, at * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, at * 8 + 4);
  }
  return bytes;
}
