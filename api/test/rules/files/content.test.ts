// Encoding of file contents.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import fc from 'fast-check';
import { bytesOfContent, contentOfBytes } from '../../../src/rules/files/content.ts';

const MOST = FILE_LIMITS.writeBytes;

test('any bytes round-trip through their content', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 200 }),
        fc.string({ unit: 'binary', maxLength: 100 }).map((text) => Buffer.from(text)),
      ),
      (given) => {
        const bytes = Buffer.from(given);
        const content = contentOfBytes(bytes);
        assert.deepEqual(bytesOfContent(content), bytes);
        const roundTrip = Buffer.from(bytes.toString('utf8')).equals(bytes);
        assert.equal(content.encoding, roundTrip && !bytes.includes(0) ? 'utf8' : 'base64');
      },
    ),
  );
});

test('utf8 is used exactly for complete valid UTF-8 without NUL', () => {
  for (const [bytes, encoding] of [
    [Buffer.from(''), 'utf8'],
    [Buffer.from('text\r\n\u0001\u007f'), 'utf8'],
    [Buffer.from('\uFEFFwith a byte order mark'), 'utf8'],
    [Buffer.from('🦭 \uFFFD \uFFFF'), 'utf8'],
    [Buffer.from('with\0NUL'), 'base64'],
    [Buffer.from([0xff]), 'base64'],
    [Buffer.from([0xc3]), 'base64'],
    [Buffer.from([0xc0, 0x80]), 'base64'],
    [Buffer.from([0xed, 0xa0, 0x80]), 'base64'],
    [Buffer.from([0xf4, 0x90, 0x80, 0x80]), 'base64'],
  ] as const) {
    const content = contentOfBytes(bytes);
    assert.equal(content.encoding, encoding, bytes.toString('hex'));
    assert.deepEqual(bytesOfContent(content), bytes);
  }
});

test('anything but complete single-line standard base64 is refused', () => {
  for (const content of ['', 'AA==', 'AAA=', 'AAAA', '+/+/', 'aGVsbG8='])
    assert.equal(bytesOfContent({ content, encoding: 'base64' }).toString('base64'), content);

  for (const content of [
    'A',
    'AA',
    'AAA',
    'AA=',
    'AB==',
    'AAA=AAA=',
    '-_-_',
    'AAAA\n',
    ' AAAA',
    'AA AA',
    '====',
    'ä',
    'AAAA====',
  ]) {
    assert.throws(
      () => bytesOfContent({ content, encoding: 'base64' }),
      { code: 'invalid_request', message: /standard alphabet/ },
      content,
    );
  }
});

test('2 MiB are accepted and a byte more is refused, whatever the encoding', () => {
  for (const [encoding, content] of [
    ['utf8', 'x'.repeat(MOST)],
    ['utf8', 'é'.repeat(MOST / 2)],
    ['base64', Buffer.alloc(MOST).toString('base64')],
  ] as const)
    assert.equal(bytesOfContent({ content, encoding }).length, MOST);

  for (const [encoding, content] of [
    ['utf8', 'x'.repeat(MOST + 1)],
    ['utf8', `${'é'.repeat(MOST / 2)}x`],
    ['base64', Buffer.alloc(MOST + 1).toString('base64')],
  ] as const) {
    assert.throws(() => bytesOfContent({ content, encoding }), {
      code: 'file_too_large',
      message: /2097153 bytes exceed the limit of 2097152 bytes/,
    });
  }
});
