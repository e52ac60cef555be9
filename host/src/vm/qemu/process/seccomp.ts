// The jail's own system call filter, beside the one that QEMU sets itself: nothing in it may change
// how large its files may get. Pure: classic BPF as the kernel reads it.
import { DriverError } from '../../driver.ts';

/**
 * AUDIT_ARCH_* and the numbers of the two system calls that set limits, by Node's name of the
 * processor.
 */
const NUMBERS = new Map([
  ['x64', { arch: 0xc000_003e, setrlimit: 160, prlimit64: 302 }],
  ['arm64', { arch: 0xc000_00b7, setrlimit: 164, prlimit64: 261 }],
]);

const RLIMIT_FSIZE = 1;
const EPERM = 1;
/** Numbers from here on are of x86's other calling convention (x32). */
const X32_BIT = 0x4000_0000;

const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const RETURN = 0x06;
const ALLOW = 0x7fff_0000;
const REFUSE = 0x0005_0000 | EPERM;
const END = 0x8000_0000;

/** Offsets in struct seccomp_data; of arguments, the lower half. */
const AT = { number: 0, arch: 4, firstArgument: 16, secondArgument: 24, thirdArgument: 32 } as const;

/**
 * The program for `bwrap --seccomp`: setting RLIMIT_FSIZE is refused, also for oneself; reading it
 * and everything else is allowed. Calls of another architecture end the process: QEMU makes none.
 * Throws for a processor it knows no numbers of.
 */
export function fileSizeFilter(nodeArch: string): Buffer {
  const numbers = NUMBERS.get(nodeArch);
  if (numbers === undefined) throw new DriverError(`no system call filter is known for ${nodeArch}`);

  // Jumps count the instructions that are left out: [if so, if not].
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
    // Without new values it only reads.
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
