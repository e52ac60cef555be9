import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readTable } from '../../../src/network/egress/listing.ts';

const table = (elem: unknown, chain = 'policy_a'): string =>
  JSON.stringify({
    nftables: [
      { metainfo: { version: '1.0.6' } },
      { chain: { name: 'forward' } },
      { chain: { name: chain } },
      { counter: { name: 'denied', packets: 7, bytes: 420 } },
      { set: { name: 'denied_to', elem: [{ elem: { val: '1.1.1.1', expires: 5 } }] } },
      { set: { name: 'ranges', elem: ['44.1.2.3'] } },
      { set: { name: 'resolved', ...(elem === undefined ? {} : { elem }) } },
    ],
  });

test('a listed table has the chain of its policy, and its addresses with names and seconds left', () => {
  const elem = [
    { elem: { val: '9.9.9.9', timeout: 120, expires: 100, comment: 'a.test' } },
    { elem: { val: '8.8.8.8', timeout: 120, expires: 0 } },
  ];
  assert.deepEqual(readTable(table(elem)), {
    chain: 'policy_a',
    resolved: [
      { address: '9.9.9.9', name: 'a.test', seconds: 100 },
      { address: '8.8.8.8', name: null, seconds: 0 },
    ],
    denied: { packets: 7, addresses: ['1.1.1.1'] },
  });
  assert.deepEqual(readTable(table(undefined))?.resolved, []);
});

test('text that is not the listing of a policy is read as none', () => {
  for (const text of ['', '{', '{}', '[]', table(['9.9.9.9']), table([], 'other')]) assert.equal(readTable(text), null);
});
