// Public key lines: keys of ssh-keygen are accepted; anything else is rejected with a reason that
// never quotes the input.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { sshPublicKey } from '../../src/sandboxes/ssh-public-key.ts';

const run = promisify(execFile);
const KINDS = [
  ['ed25519', '256'],
  ['rsa', '2048'],
  ['rsa', '4096'],
  ['ecdsa', '256'],
  ['ecdsa', '384'],
  ['ecdsa', '521'],
] as const;

let folder: string;
const made = new Map<string, { line: string; private: string }>();
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-ssh-key-'));
  for (const [type, bits] of [...KINDS, ['rsa', '1024']] as const) {
    const file = join(folder, `${type}-${bits}`);
    await run('ssh-keygen', ['-q', '-t', type, '-b', bits, '-N', '', '-C', 'somebody@example.test', '-f', file]);
    made.set(`${type}-${bits}`, { line: await readFile(`${file}.pub`, 'utf8'), private: await readFile(file, 'utf8') });
  }
});
after(() => rm(folder, { recursive: true }));

function key(name: string): { line: string; private: string } {
  const found = made.get(name);
  assert.ok(found !== undefined, name);
  return found;
}

/** The reason of a rejection; null if the text is accepted. */
function faultOf(text: unknown): string | null {
  const result = sshPublicKey.safeParse(text);
  return result.success ? null : result.error.issues.map(({ message }) => message).join('; ');
}

function part(bytes: Uint8Array | string): Buffer {
  const content = Buffer.from(bytes as string, 'latin1');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, content]);
}

/** A line with hand-built material. */
function lineOf(type: string, ...parts: (Uint8Array | string)[]): string {
  return `${type} ${Buffer.concat([part(type), ...parts.map(part)]).toString('base64')}`;
}

const POINT = Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 7)]);

for (const [type, bits] of KINDS) {
  test(`a ${type} public key of ${bits} bits is accepted with or without comment, and trimmed`, () => {
    const { line } = key(`${type}-${bits}`);
    assert.equal(sshPublicKey.parse(line), line.trim());
    assert.equal(sshPublicKey.parse(`  ${line}\r\n`), line.trim());
    const bare = line.split(' ').slice(0, 2).join(' ');
    assert.equal(sshPublicKey.parse(bare), bare);
    assert.equal(faultOf(`${bare} a comment with several words, ünd Ümlaute`), null);
  });

  test(`a ${type} public key of ${bits} bits truncated at any position is rejected`, () => {
    const [kind = '', material = ''] = key(`${type}-${bits}`).line.split(' ');
    for (let length = 0; length < material.length; length += 1) {
      assert.match(
        faultOf(`${kind} ${material.slice(0, length)}`) ?? 'accepted',
        /truncated or damaged/,
        String(length),
      );
    }

    assert.match(faultOf(`${kind} ${material}AAAA`) ?? '', /truncated or damaged/);
  });

  test(`a ${type} private key of ${bits} bits, whole or in part, is rejected with a warning`, () => {
    const { private: text } = key(`${type}-${bits}`);
    const lines = text.trim().split('\n');
    for (const pasted of [
      text,
      lines.slice(0, 3).join('\n'),
      lines.slice(1, -1).join('\n'),
      lines[1],
      `my key: ${text}`,
      lines.join(' '),
    ]) {
      assert.match(
        faultOf(pasted) ?? 'accepted',
        /^is a private key and was rejected\. .* replace it wherever it is used\. .*\.pub$/,
      );
    }
  });
}

test('keys of hardware tokens are accepted', () => {
  assert.equal(faultOf(lineOf('sk-ssh-ed25519@openssh.com', Buffer.alloc(32, 1), 'ssh:')), null);
  assert.equal(faultOf(lineOf('sk-ecdsa-sha2-nistp256@openssh.com', 'nistp256', POINT, 'ssh:')), null);
});

test('an RSA key under 2048 or over 16384 bits is rejected with its size', () => {
  assert.match(faultOf(key('rsa-1024').line) ?? '', /must have an RSA key of 2048 to 16384 bits, not 1024/);
  const large = Buffer.concat([Buffer.from([0, 0x80]), Buffer.alloc(2_048)]);
  assert.match(faultOf(lineOf('ssh-rsa', Buffer.from([1, 0, 1]), large)) ?? '', /not 16392/);
});

for (const [what, line, expected] of [
  ['several lines', () => `${key('ed25519-256').line}${key('rsa-2048').line}`, /must be one line/],
  ['options', () => `command="ls",no-pty ${key('ed25519-256').line}`, /options before it are not accepted/],
  ['options in quotes', () => `environment="A=b c" ${key('ed25519-256').line}`, /options before it are not accepted/],
  ['a DSA key', () => lineOf('ssh-dss', 'x'), /must not be a DSA key/],
  ['a certificate', () => lineOf('ssh-ed25519-cert-v01@openssh.com', 'x'), /not a certificate/],
  ['nothing', () => '', /beginning with one of ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256/],
  ['white space', () => ' \t\n', /beginning with one of/],
  ['material alone', () => key('ed25519-256').line.split(' ')[1] ?? '', /beginning with one of/],
  ['a kind alone', () => 'ssh-ed25519', /must have its key in base64/],
  [
    'another kind than the material’s',
    () => key('ed25519-256').line.replace('ssh-ed25519', 'ssh-rsa'),
    /a key of type ssh-rsa/,
  ],
  ['base64 without its padding', () => key('rsa-2048').line.replace(/=+ /, ' '), /in base64|accepted/],
  ['a NUL', () => `${key('ed25519-256').line.trim()}\0`, /control characters/],
  ['a tab in the comment', () => `${key('ed25519-256').line.trim()}\tx`, /control characters/],
  [
    'a long comment',
    () => `${key('ed25519-256').line.trim()} ${'x'.repeat(300)}`,
    /a comment of at most 256 characters/,
  ],
  ['a wrong curve', () => lineOf('ecdsa-sha2-nistp256', 'nistp384', POINT), /truncated or damaged/],
  ['a compressed point', () => lineOf('ecdsa-sha2-nistp256', 'nistp256', Buffer.alloc(33, 2)), /truncated or damaged/],
  ['a short ed25519 key', () => lineOf('ssh-ed25519', Buffer.alloc(31)), /truncated or damaged/],
  [
    'a negative modulus',
    () => lineOf('ssh-rsa', Buffer.from([1, 0, 1]), Buffer.alloc(256, 0xff)),
    /truncated or damaged/,
  ],
  ['an even exponent', () => lineOf('ssh-rsa', Buffer.from([2]), Buffer.alloc(257, 1)), /truncated or damaged/],
  [
    'a token key without its application',
    () => lineOf('sk-ssh-ed25519@openssh.com', Buffer.alloc(32)),
    /truncated or damaged/,
  ],
  ['a key of PuTTY', () => 'PuTTY-User-Key-File-3: ssh-ed25519', /is a private key/],
] as const) {
  test(`${what} is rejected with the reason`, () => {
    assert.match(faultOf(line()) ?? 'accepted', expected);
  });
}

test('a value that is not a string, or longer than any key, is rejected', () => {
  for (const value of [null, 5, {}, ['ssh-ed25519'], true]) assert.notEqual(faultOf(value), null);
  assert.notEqual(faultOf(`${key('ed25519-256').line}${'x'.repeat(17_000)}`), null);
});

test('any input is accepted as one line, or rejected by a message that never quotes it', () => {
  const marked = fc.string({ unit: 'binary', maxLength: 400 });
  const changed = fc
    .tuple(fc.constantFrom(...KINDS), fc.nat(), fc.string({ maxLength: 8 }))
    .map(([[type, bits], at, text]) => {
      const { line } = key(`${type}-${bits}`);
      const place = at % line.length;
      return line.slice(0, place) + text + line.slice(place);
    });
  fc.assert(
    fc.property(fc.oneof(marked, changed), (text) => {
      const result = sshPublicKey.safeParse(text);
      if (result.success) {
        assert.doesNotMatch(result.data, /[\r\n\0]/);
        assert.equal(result.data, text.trim());
        return;
      }
      const material = text.split(/\s+/).find((word) => word.length > 40);
      for (const { message } of result.error.issues)
        assert.ok(material === undefined || !message.includes(material.slice(0, 30)));
    }),
    { numRuns: 2_000 },
  );
});
