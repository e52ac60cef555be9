// Odd texts, paths and contents for requests: most are ordinary, the rest breaks programs.
import { createCipheriv, createHash } from 'node:crypto';
import type { Random } from '../../world/random.ts';

const COMMON_NAMES = [
  'a',
  'b',
  'c.txt',
  'dir',
  'deep',
  'link',
  'ring',
  'fifo',
  'socket',
  'closed',
  'growing',
  'sparse',
  'many',
] as const;
const ODD_NAMES = [
  '',
  '.',
  '..',
  '...',
  ' ',
  '~',
  '-rf',
  '*',
  '\n',
  '\t',
  '\r',
  '\\',
  '"',
  "'",
  '`id`',
  '$(id)',
  ';reboot',
  '|ls',
  '>x',
  '%00',
  '%2e%2e',
  '%2f',
  '+',
  '&path=x',
  '#',
  '?',
  '\u0001',
  '\u007f',
  '\u0000',
  '\uFEFF',
  '\u202E',
  'é',
  'e\u0301',
  '🦭',
  '👩‍👩‍👧',
  '\uFFFD',
  '\uFFFF',
  '__proto__',
  'constructor',
  'CON',
  'a:b',
  '.berth-write-1-1',
] as const;
const SYSTEM_PATHS = [
  '/',
  '/code',
  '/etc',
  '/etc/passwd',
  '/etc/shadow',
  '/proc',
  '/proc/self/mem',
  '/proc/self/fd/0',
  '/proc/self/environ',
  '/proc/kmsg',
  '/proc/1/root',
  '/proc/sys/kernel/hostname',
  '/proc/sysrq-trigger',
  '/sys/kernel',
  '/sys/kernel/debug',
  '/dev',
  '/dev/null',
  '/dev/zero',
  '/dev/full',
  '/dev/tty',
  '/dev/ptmx',
  '/dev/fd/0',
  '/dev/shm',
  '/dev/fuse',
  '/tmp',
  '/run',
  '/run/berth',
  '/root',
  '/home/berth',
  '/usr/bin',
  '/lost+found',
] as const;

export function oddName(random: Random): string {
  switch (random.weighted({ common: 60, odd: 30, long: 4, random: 6 })) {
    case 'common':
      return random.pick(COMMON_NAMES);
    case 'odd':
      return random.pick(ODD_NAMES);
    case 'long':
      return random.pick(['x', 'é', '🦭'] as const).repeat(random.pick([127, 128, 255, 256, 1_100] as const));
    default:
      return Array.from({ length: random.integer(1, 20) }, () => String.fromCodePoint(randomCodePoint(random))).join(
        '',
      );
  }
}

/** An unescaped path; some contain NUL or are too long. */
export function oddPath(random: Random): string {
  const count = Number(random.weighted({ 0: 1, 1: 12, 2: 6, 3: 3, 6: 1, 40: 1 }));
  const names = Array.from({ length: count }, () => oddName(random));
  switch (random.weighted({ relative: 60, system: 25, absolute: 15 })) {
    case 'relative':
      return names.join('/');
    case 'system':
      return [random.pick(SYSTEM_PATHS), ...names.slice(0, random.integer(0, 1))].join('/');
    default:
      return `/${names.join('/')}`;
  }
}

/** A query parameter's value, mostly the correctly escaped path. */
export function escaped(random: Random, value: string): string {
  if (random.chance(0.95)) return encodeURIComponent(value.isWellFormed() ? value : value.toWellFormed());
  return random.pick(['%', '%zz', '%ff', '%c0%af', '%ed%a0%80', '%00', '+', '%2', 'a%', ''] as const);
}

/** Pseudo-random bytes from the sequence. */
export function randomBytes(random: Random, length: number): Buffer {
  const key = createHash('sha256').update(String(random.next())).digest();
  return createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(length));
}

/** Content length: mostly short, sometimes at or beyond the write limit. */
export function oddLength(random: Random): number {
  switch (random.weighted({ none: 5, short: 70, middle: 15, limit: 4, beyond: 2 })) {
    case 'none':
      return 0;
    case 'short':
      return random.integer(1, 200);
    case 'middle':
      return random.integer(1_000, 200_000);
    case 'limit':
      return 2_097_152 + random.integer(-1, 1);
    default:
      return random.integer(2_097_153, 3_500_000);
  }
}

/** Text of that many characters, some of them escaped in JSON. */
export function oddText(random: Random, length: number): string {
  const unit = random.pick(['x', 'line\n', '\u0001', '"\\', 'é', '🦭', '\0', '\uFEFF', '</script>'] as const);
  return unit
    .repeat(Math.ceil(length / unit.length))
    .slice(0, length)
    .toWellFormed();
}

function randomCodePoint(random: Random): number {
  const point = random.integer(0, random.pick([0x7f, 0x7ff, 0xffff, 0x10ffff] as const));
  return point >= 0xd800 && point <= 0xdfff ? 0x20 : point;
}
