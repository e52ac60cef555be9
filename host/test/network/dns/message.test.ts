import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  RCODE,
  answers,
  rcodeOf,
  readQuery,
  serverFailure,
  udpAnswer,
  withId,
} from '../../../src/network/dns/message.ts';
import type { Query } from '../../../src/network/dns/message.ts';
import { answerOf, question } from './dns-zone.ts';

function relayed(bytes: Buffer): Query {
  const read = readQuery(bytes);
  assert.ok(typeof read === 'object' && 'relay' in read);
  return read.relay;
}

function refusal(bytes: Buffer): number {
  const read = readQuery(bytes);
  assert.ok(typeof read === 'object' && 'answer' in read);
  assert.equal(read.answer.readUInt16BE(0), bytes.readUInt16BE(0));
  assert.ok(read.answer.readUInt16BE(2) & 0x8000, 'it is an answer');
  return rcodeOf(read.answer);
}

/** The query with an EDNS record that states the maximum response size. */
function withEdns(query: Buffer, bytes: number): Buffer {
  const record = Buffer.from([0, 0, 41, bytes >> 8, bytes & 255, 0, 0, 0, 0, 0, 0]);
  const message = Buffer.concat([query, record]);
  message.writeUInt16BE(1, 10);
  return message;
}

test('a query is relayed unchanged, and its size limit is read', () => {
  const plain = question(0x1234, 'www.internet.test');
  assert.deepEqual(relayed(plain), { bytes: plain, id: 0x1234, questionEnd: plain.length, udpAnswerBytes: 512 });
  assert.equal(relayed(withEdns(plain, 1_232)).udpAnswerBytes, 1_232);
  assert.equal(relayed(withEdns(plain, 100)).udpAnswerBytes, 512, 'never below what every client takes');
  assert.equal(relayed(withEdns(plain, 65_535)).udpAnswerBytes, 4_096, 'never above what is passed on by UDP');
});

test('a message that is no query is dropped', () => {
  const answer = answerOf(question(1, 'www.internet.test'), 'udp');
  for (const bytes of [answer, Buffer.alloc(0), Buffer.alloc(11), Buffer.alloc(4_097)])
    assert.equal(readQuery(bytes), 'drop');
});

test('a refused query gets a response with the code of the reason', () => {
  const good = question(7, 'www.internet.test');
  const changed = (offset: number, value: number) => {
    const bytes = Buffer.from(good);
    bytes.writeUInt16BE(value, offset);
    return bytes;
  };
  assert.equal(refusal(changed(2, 0x2900)), RCODE.notImplemented, 'an update');
  assert.equal(refusal(changed(4, 0)), RCODE.formatError, 'no question');
  assert.equal(refusal(changed(4, 2)), RCODE.formatError, 'two questions');
  assert.equal(refusal(changed(6, 1)), RCODE.formatError, 'a question with answers');
  assert.equal(refusal(good.subarray(0, good.length - 1)), RCODE.formatError, 'cut short');
  assert.equal(refusal(changed(12, 0xc00c)), RCODE.formatError, 'a name that points at itself');
  assert.equal(refusal(question(7, 'www.internet.test', 252)), RCODE.refused, 'a zone transfer');
  assert.equal(refusal(question(7, 'version.bind', 16, 3)), RCODE.refused, 'a question about the name server itself');
});

test('a response counts only when its id, kind and question match the query', () => {
  const query = relayed(question(1, 'www.internet.test'));
  const good = answerOf(withId(query.bytes, 99), 'udp');
  assert.ok(answers(good, query, 99));
  assert.ok(!answers(good, query, 98), 'another id');
  assert.ok(!answers(withId(query.bytes, 99), query, 99), 'a question');
  assert.ok(!answers(answerOf(question(99, 'www.elsewhere.test'), 'udp'), query, 99), 'another name');
  assert.ok(!answers(answerOf(question(99, 'www.internet.test', 28), 'udp'), query, 99), 'another type');
  assert.ok(answers(answerOf(question(99, 'WWW.Internet.TEST'), 'udp'), query, 99), 'other letters of the same name');
  assert.ok(!answers(good.subarray(0, 20), query, 99), 'cut short');
  const empty = Buffer.alloc(12);
  empty.writeUInt16BE(99, 0);
  empty.writeUInt16BE(0x8000, 2);
  assert.ok(!answers(empty, query, 99), 'a success without its question');
  empty.writeUInt16BE(0x8001, 2);
  assert.ok(answers(empty, query, 99), 'a format error without its question');
});

test("a response above the guest's UDP limit is replaced by a truncated one", () => {
  const query = relayed(question(0x0102, 'www.internet.test'));
  const small = answerOf(withId(query.bytes, 99), 'udp');
  assert.deepEqual(udpAnswer(small, query), withId(small, 0x0102));
  const cut = udpAnswer(Buffer.concat([small, Buffer.alloc(600)]), query);
  assert.equal(cut.readUInt16BE(0), 0x0102);
  assert.ok(cut.readUInt16BE(2) & 0x0200, 'marked as truncated');
  assert.equal(cut.length, query.questionEnd);
  assert.equal(cut.readUInt16BE(6), 0, 'no records');
});

const anyBytes = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));

/** Mutated, truncated queries: near enough to real ones to get deep into the parser. */
const nearQuestions = fc
  .record({
    name: fc
      .array(fc.stringMatching(/^[a-zA-Z0-9-]{1,63}$/), { minLength: 1, maxLength: 5 })
      .map((labels) => labels.join('.')),
    edns: fc.option(fc.nat(65_535)),
    changes: fc.array(fc.tuple(fc.nat(320), fc.nat(255)), { maxLength: 4 }),
    cut: fc.nat(12),
  })
  .map(({ name, edns, changes, cut }) => {
    const plain = question(1, name);
    const bytes = Buffer.from(edns === null ? plain : withEdns(plain, edns));
    for (const [offset, value] of changes) if (offset < bytes.length) bytes[offset] = value;
    return bytes.subarray(0, bytes.length - Math.min(cut, bytes.length));
  });

test('any guest message is dropped, answered within bounds or relayed unchanged', () => {
  const sent = fc.oneof(anyBytes, nearQuestions);
  fc.assert(
    fc.property(sent, (bytes) => {
      const before = Buffer.from(bytes);
      const read = readQuery(bytes);
      assert.deepEqual(bytes, before);
      if (read === 'drop') return;
      if ('answer' in read) {
        assert.ok(read.answer.length <= bytes.length);
        assert.equal(readQuery(read.answer), 'drop', 'an answer is never taken for a question');
        return;
      }
      const { questionEnd, udpAnswerBytes } = read.relay;
      assert.deepEqual(read.relay.bytes, bytes);
      assert.ok(questionEnd > 16 && questionEnd <= bytes.length && udpAnswerBytes >= 512 && udpAnswerBytes <= 4_096);
      assert.equal(rcodeOf(serverFailure(read.relay)), RCODE.serverFailure);
    }),
    { numRuns: 2_000 },
  );
});

test('of any name server message only a matching response passes, within the size limit', () => {
  const query = relayed(question(1, 'www.internet.test'));
  const real = answerOf(withId(query.bytes, 99), 'udp');
  const changed = fc.array(fc.tuple(fc.nat(real.length - 1), fc.nat(255)), { maxLength: 3 }).map((changes) => {
    const bytes = Buffer.from(real);
    for (const [offset, value] of changes) bytes[offset] = value;
    return bytes;
  });
  fc.assert(
    fc.property(fc.oneof(anyBytes, changed), fc.nat(5_000), (bytes, padding) => {
      const message = Buffer.concat([bytes, Buffer.alloc(padding)]);
      if (!answers(message, query, 99)) return;
      assert.equal(message.readUInt16BE(0), 99);
      const passed = udpAnswer(message, query);
      assert.ok(passed.length <= 512);
      assert.equal(passed.readUInt16BE(0), 1);
    }),
    { numRuns: 2_000 },
  );
});
