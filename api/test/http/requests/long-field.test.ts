// The reader of bodies with a long text field gives the same value as JSON.parse, for any text,
// escapes and chunks.
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import type { FastifyRequest } from 'fastify';
import fc from 'fast-check';
import { BytesInFlight } from '../../../src/call/bytes-in-flight.ts';
import { readWithLongField } from '../../../src/http/requests/long-field.ts';
import { Turns } from '../../../src/http/requests/turns.ts';
import { CodedError } from '../../../src/rules/coded-error.ts';

const FIELD = { name: 'content', maxBytes: 100_000, tooLong: 'file_too_large' } as const;
const LIMIT = 1_000_000;

/** Reads a body that arrives in pieces that end at these places. */
async function read(body: string | Buffer, cuts: readonly number[] = []): Promise<unknown> {
  const bytes = Buffer.from(body as string);
  const places = [0, ...[...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  const pieces = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
  const raw = Object.assign(Readable.from(pieces.filter(({ length }) => length > 0)), { headers: {} });
  return await readWithLongField(
    { raw: raw as unknown as IncomingMessage } as FastifyRequest,
    FIELD,
    LIMIT,
    (_request, text) => {
      try {
        return Promise.resolve(JSON.parse(text.toString('utf8')));
      } catch (error) {
        return Promise.reject(new CodedError('invalid_json', (error as Error).message));
      }
    },
    new BytesInFlight(128).open({ address: '192.0.2.1' }),
    new Turns(),
  );
}

const failure =
  (code: string, message = /./) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof CodedError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };

/** A JSON text of the string, with every character, or some, escaped. */
const literal = (text: string, escapes: number): string =>
  `"${text
    .split('')
    .map((unit, index) => {
      const plain = JSON.stringify(unit).slice(1, -1);
      const isHalf = /[\ud800-\udfff]/.test(unit);
      if (!isHalf && ((escapes >> (index % 30)) & 1) === 0) return plain;
      return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
    })
    .join('')}"`;

const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ unit: fc.constantFrom('"', '\\', '\n', 'u', 'é', '€', '😀', 'a', '\u0000', '\u2028'), maxLength: 60 }),
);
const spaces = fc.constantFrom('', ' ', '\n\t', '\r\n  ');
const keys = fc.oneof(fc.constantFrom('content', 'path', 'encoding', '', 'Content', 'contents'), texts);
const values = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.constant('{"content":"inner","x":[{"content":"deeper"}]}'),
  fc.tuple(texts, fc.nat()).map(([text, escapes]) => literal(text, escapes)),
);
const bodies = fc
  .array(fc.tuple(keys, fc.nat(), spaces, spaces, values), { maxLength: 6 })
  .map((fields) =>
    fields.map(([key, escapes, one, other, value]) => `${one}${literal(key, escapes)}${other}:${one}${value}${other}`),
  )
  .map((fields) => `{${fields.join(',')}}`);

test('any object is read as by JSON.parse, in any chunks', async () => {
  await fc.assert(
    fc.asyncProperty(bodies, fc.array(fc.nat(), { maxLength: 8 }), async (body, cuts) => {
      const expected = JSON.parse(body) as Record<string, unknown>;
      // The text of the field is UTF-8, so a lone surrogate is kept only as such.
      const { content } = expected;
      if (typeof content === 'string' && !content.isWellFormed()) expected['content'] = '\ud800';
      assert.deepEqual(await read(body, cuts), expected);
    }),
    { numRuns: 500 },
  );
});

test('any text that is not JSON is refused, in any chunks', async () => {
  const broken = fc
    .tuple(bodies, fc.nat(), fc.constantFrom('', '"', '\\', '{', '}', ',', ':', 'x', '\u0001', '\\u12'))
    .map(([body, at, inserted]) => body.slice(0, at % body.length) + inserted + body.slice((at % body.length) + 1));
  await fc.assert(
    fc.asyncProperty(broken, fc.array(fc.nat(), { maxLength: 8 }), async (body, cuts) => {
      let isJson = true;
      try {
        JSON.parse(body);
      } catch {
        isJson = false;
      }
      if (body.isWellFormed() && isJson) await read(body, cuts);
      else if (body.isWellFormed()) await assert.rejects(read(body, cuts), failure('invalid_json'));
    }),
    { numRuns: 500 },
  );
});

test('bytes that are not UTF-8 are refused, also at the end of the body', async () => {
  const body = Buffer.from('{"content":"abc"}');
  body[13] = 0xff;
  await assert.rejects(read(body, [4, 13]), failure('invalid_json', /^the body is not UTF-8$/));
  const ended = Buffer.concat([Buffer.from('{"content":"'), Buffer.from([0xe2, 0x82])]);
  await assert.rejects(read(ended), failure('invalid_json', /^the body is not UTF-8$/));
});

test('a fault in the long field is named without the text around it', async () => {
  await assert.rejects(read('{"content":"secret\\x"}'), failure('invalid_json', /^(?!.*secret).*Bad escaped/));
  await assert.rejects(read('{"content":"secret\n"}'), failure('invalid_json', /^(?!.*secret).*Bad control/));
  await assert.rejects(read('{"content":"secret'), failure('invalid_json', /^(?!.*secret)/));
});

test('a text above the limit is refused before the body has arrived', async () => {
  const text = 'é'.repeat(FIELD.maxBytes / 2);
  assert.deepEqual(await read(JSON.stringify({ content: text })), { content: text });
  await assert.rejects(
    read(`{"content":"${text}x`),
    failure('file_too_large', /body\.content exceeds the limit of 100000 bytes/),
  );
  await assert.rejects(read(`{"content":"${'\\u0041'.repeat(FIELD.maxBytes + 1)}`), failure('file_too_large'));
});

test('only the long field may be long', async () => {
  assert.deepEqual(await read(`{"path":"${'a'.repeat(60_000)}"}`), { path: 'a'.repeat(60_000) });
  for (const long of ['"path":"', '"x":[1,', ' '.repeat(70_000)])
    await assert.rejects(read(`{${long}${'1'.repeat(70_000)}`), failure('payload_too_large'));
});

test('nothing is kept of a body that cannot be JSON, and its length is limited', async () => {
  const parsed: string[] = [];
  const readGarbage = (bytes: number): Promise<unknown> => {
    const raw = Object.assign(Readable.from([Buffer.alloc(bytes / 2, 'x'), Buffer.alloc(bytes / 2, 'x')]), {
      headers: {},
    });
    return readWithLongField(
      { raw } as unknown as FastifyRequest,
      FIELD,
      LIMIT,
      (_request, text) => Promise.resolve(void parsed.push(text.toString('utf8'))),
      new BytesInFlight(128).open({ address: '192.0.2.1' }),
      new Turns(),
    );
  };
  assert.equal(await readGarbage(LIMIT), undefined);
  assert.deepEqual(parsed, ['x']);
  await assert.rejects(readGarbage(LIMIT + 2), failure('payload_too_large'));
});

test('work of many bodies leaves time for other requests', async () => {
  const turns = new Turns();
  const busy = (): void => {
    const endsAt = performance.now() + 2;
    while (performance.now() < endsAt);
  };
  const progress = { done: false };
  const all = Promise.all(
    Array.from({ length: 20 }, async () => {
      for (let piece = 0; piece < 5; piece += 1) await turns.run(busy);
    }),
  ).then(() => (progress.done = true));
  let loops = 0;
  for (; !progress.done; loops += 1) await new Promise((resolve) => setImmediate(resolve));
  await all;
  // 200 ms of work, at most three pieces of it in a turn.
  assert.ok(loops >= 30, String(loops));
});
