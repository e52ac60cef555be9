// Compiles a policy over system calls to the classic BPF that the kernel and `bwrap --seccomp`
// accept. Pure.
import { architectureOf, type SystemCall } from './system-calls.ts';

/** Compares 32 bits of an argument, the lower half by default, after masking. */
export interface Comparison {
  argument: 0 | 1 | 2 | 3 | 4 | 5;
  half?: 'low' | 'high';
  mask?: number;
  equals: number;
}

export interface FilterPolicy {
  /** Outcome of calls that are neither in `calls` nor in `conditional`. */
  others: 'allowed' | 'refused';
  /** Calls with the opposite outcome. */
  calls: readonly SystemCall[];
  /** Calls allowed if all comparisons of at least one alternative hold. */
  conditional: Readonly<Partial<Record<SystemCall, readonly (readonly Comparison[])[]>>>;
}

type Instruction = readonly [code: number, ifSo: number, ifNot: number, value: number];

const LOAD = 0x20;
const AND = 0x54;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const RETURN = 0x06;

const ALLOW = 0x7fff_0000;
const KILL_PROCESS = 0x8000_0000;
const ERROR = 0x0005_0000;
/** Libraries then fall back to an older call. */
const ENOSYS = 38;
/** A refused argument. */
const EPERM = 1;

/** Numbers from here on use x86's x32 calling convention. */
const X32_BIT = 0x4000_0000;
/** Offsets in struct seccomp_data. */
const AT = { number: 0, architecture: 4, arguments: 16 } as const;

/**
 * The filter for processes of an architecture, in the kernel's binary form. Calls of another
 * architecture kill the process. Throws for an unknown architecture.
 */
export function compileFilter(policy: FilterPolicy, nodeArch: string): Buffer {
  const { audit, numberOf } = architectureOf(nodeArch);
  const [listed, other] = policy.others === 'refused' ? [ALLOW, ERROR | ENOSYS] : [ERROR | ENOSYS, ALLOW];
  const conditional = Object.entries(policy.conditional) as [SystemCall, readonly (readonly Comparison[])[]][];
  return encode([
    [LOAD, 0, 0, AT.architecture],
    [JUMP_IF_EQUAL, 1, 0, audit],
    [RETURN, 0, 0, KILL_PROCESS],
    [LOAD, 0, 0, AT.number],
    [JUMP_IF_AT_LEAST, 0, 1, X32_BIT],
    [RETURN, 0, 0, ERROR | ENOSYS],
    ...policy.calls.flatMap((call) => ifCall(numberOf(call), [[RETURN, 0, 0, listed]])),
    ...conditional.flatMap(([call, alternatives]) =>
      ifCall(numberOf(call), [...alternatives.flatMap(allowIf), [RETURN, 0, 0, ERROR | EPERM]]),
    ),
    [RETURN, 0, 0, other],
  ]);
}

/** The body must end with a return: it changes the loaded value. */
function ifCall(number: number | null, body: readonly Instruction[]): Instruction[] {
  return number === null ? [] : [[JUMP_IF_EQUAL, 0, body.length, number], ...body];
}

function allowIf(comparisons: readonly Comparison[]): Instruction[] {
  let rest: Instruction[] = [[RETURN, 0, 0, ALLOW]];
  for (const { argument, half, mask, equals } of comparisons.toReversed()) {
    rest = [
      [LOAD, 0, 0, AT.arguments + argument * 8 + (half === 'high' ? 4 : 0)],
      ...(mask === undefined ? [] : ([[AND, 0, 0, mask]] as const)),
      [JUMP_IF_EQUAL, 0, rest.length, equals],
      ...rest,
    ];
  }
  return rest;
}

/** Throws for a jump too long for its byte. */
function encode(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [at, [code, ifSo, ifNot, value]] of program.entries()) {
    bytes.writeUInt16LE(code, at * 8);
    bytes.writeUInt8(ifSo, at * 8 + 2);
    bytes.writeUInt8(ifNot, at * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, at * 8 + 4);
  }
  return bytes;
}
