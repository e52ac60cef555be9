import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { ADDRESS_LIMITS, addressesOf, questionName } from '../../../src/network/dns/addresses.ts';
import { question } from './dns-zone.ts';

interface Answer {
  name: string;
  type: number;
  data: Buffer;
  ttl?: number;
}

const encoded = (name: string): Buffer =>
  Buffer.concat([
    ...name.split('.').map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`)),
    Buffer.of(0),
  ]);

function response(name: string, answers: readonly Answer[]): Buffer {
  const head = question(7, name);
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(answers.length, 6);
  const records = answers.flatMap(({ name: owner, type, data, ttl = 300 }) => {
    const fixed = Buffer.from([0, type, 0, 1, 0, 0, 0, 0, 0, 0]);
    fixed.writeUInt32BE(ttl, 4);
    fixed.writeUInt16BE(data.length, 8);
    return [encoded(owner), fixed, data];
  });
  return Buffer.concat([head, ...records]);
}

const a = (name: string, address: string, ttl = 300): Answer => ({
  name,
  type: 1,
  data: Buffer.from(address.split('.').map(Number)),
  ttl,
});
const cname = (name: string, target: string, ttl = 300): Answer => ({ name, type: 5, data: encoded(target), ttl });

test('addresses of the name and of its aliases are found, with the shortest time to live', () => {
  const message = response('WWW.Example.com', [
    cname('www.example.com', 'edge.cdn.test', 20),
    a('EDGE.cdn.test', '9.9.9.9', 900),
    a('www.example.com', '8.8.8.8'),
  ]);
  assert.equal(questionName(message), 'www.example.com');
  assert.deepEqual(addressesOf(message, 'www.example.com'), [
    { address: '9.9.9.9', ttlSeconds: 20 },
    { address: '8.8.8.8', ttlSeconds: 300 },
  ]);
});

test('addresses of other names in a response are ignored', () => {
  const message = response('www.example.com', [a('evil.test', '6.6.6.6'), cname('evil.test', 'www.example.com')]);
  assert.deepEqual(addressesOf(message, 'www.example.com'), []);
});

test('a loop and an overlong chain of aliases end', () => {
  const loop = response('a.test', [cname('a.test', 'b.test'), cname('b.test', 'a.test'), a('b.test', '9.9.9.9')]);
  assert.deepEqual(addressesOf(loop, 'a.test'), [{ address: '9.9.9.9', ttlSeconds: 300 }]);
  const chain = Array.from({ length: 40 }, (_, index) => cname(`n${index}.test`, `n${index + 1}.test`));
  const last = `n${ADDRESS_LIMITS.aliases + 1}.test`;
  assert.deepEqual(addressesOf(response('n0.test', [...chain, a(last, '9.9.9.9')]), 'n0.test'), []);
});

test('a response with a huge number of addresses yields a bounded number', () => {
  const many = Array.from({ length: 1_000 }, (_, index) => a('a.test', `9.9.${index >> 8}.${index & 255}`));
  assert.equal(addressesOf(response('a.test', many), 'a.test').length, ADDRESS_LIMITS.addresses);
});

test('a label with a dot or an unusual character has no name', () => {
  const dotted = question(7, 'x');
  const label = Buffer.from('www.example.com');
  const hidden = Buffer.concat([dotted.subarray(0, 12), Buffer.of(label.length), label, Buffer.from([0, 0, 1, 0, 1])]);
  assert.equal(questionName(hidden), null);
  assert.equal(questionName(question(7, 'a b.test')), null);
});

test('a response of any bytes yields addresses or nothing, in bounded time', () => {
  const base = response('a.test', [cname('a.test', 'b.test'), a('b.test', '9.9.9.9')]);
  for (let round = 0; round < 2_000; round += 1) {
    const bytes = Buffer.from(base);
    for (let change = 0; change < 4; change += 1) bytes[Math.floor(Math.random() * bytes.length)] = Math.random() * 256;
    addressesOf(bytes.subarray(0, Math.random() * bytes.length), 'a.test');
    addressesOf(randomBytes(60), 'a.test');
  }
  const pointing = Buffer.concat([question(7, 'a'), Buffer.alloc(60_000, 0xc0)]);
  pointing.writeUInt16BE(65_535, 6);
  assert.deepEqual(addressesOf(pointing, 'a'), []);
});
