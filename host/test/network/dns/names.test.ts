import assert from 'node:assert/strict';
import { test } from 'node:test';
import { egressPolicy, OPEN_EGRESS, type EgressPolicy } from '@berth/protocol/egress.ts';
import { allowsName } from '../../../src/network/dns/names.ts';
import { egressRules, policyChain } from '../../../src/network/egress/rules.ts';
import { parseGuestCidr, slotOf } from '../../../src/network/slots/slot.ts';

const allow = (...names: string[]): EgressPolicy => ({ ...OPEN_EGRESS, mode: 'allow', names });

test('a name is allowed if the list has it, or a wildcard above it', () => {
  const policy = allow('example.com', '*.npmjs.org');
  for (const name of ['example.com', 'registry.npmjs.org', 'a.b.npmjs.org']) assert.ok(allowsName(policy, name), name);
  for (const name of ['npmjs.org', 'www.example.com', 'evilnpmjs.org', 'example.com.evil.test', 'com', ''])
    assert.ok(!allowsName(policy, name), name);
});

test('no name is allowed under none, every name under open', () => {
  assert.ok(!allowsName({ ...OPEN_EGRESS, mode: 'none' }, 'example.com'));
  assert.ok(allowsName(OPEN_EGRESS, 'example.com'));
});

test('a policy refuses names and ranges that could be read in two ways', () => {
  const names = ['Example.com', 'example.com.', '*', '*.', 'a.*.com', 'ex ample.com', '', '1.2.3.4', 'a..b', '-a.com'];
  for (const name of names) assert.ok(!egressPolicy.safeParse(allow(name)).success, name);
  for (const range of ['1.2.3.4', '1.2.3.4/33', '1.2.3.4/8', '01.2.3.0/24', '256.0.0.0/8', '::/0', '1.0.0.0/08'])
    assert.ok(!egressPolicy.safeParse({ ...allow(), ranges: [range] }).success, range);
  const fine = {
    ...allow('*.example.com', 'xn--bcher-kva.example', '_acme.example'),
    ranges: ['0.0.0.0/0', '1.2.3.4/32'],
  };
  assert.ok(egressPolicy.safeParse(fine).success);
});

test('the chain of a policy names its content and not its revision', () => {
  const chain = policyChain(allow('example.com'));
  assert.equal(policyChain({ ...allow('example.com'), revision: 7 }), chain);
  assert.notEqual(policyChain(allow('example.org')), chain);
});

test('the rules of the largest policy fit one argument of a program', () => {
  const slot = slotOf(parseGuestCidr('10.200.0.0/16'), 1);
  const largest: EgressPolicy = {
    ...allow(),
    ranges: Array.from({ length: 64 }, (_, index) => `255.255.255.${index * 4}/30`),
    ports: Array.from({ length: 32 }, (_, index) => 65_535 - index),
  };
  const resolved = Array.from({ length: 1_024 }, (_, index) => ({
    address: `100.100.${index % 256}.255`,
    name: 'a'.repeat(80 + (index % 2)),
    seconds: 7_200,
  }));
  assert.ok(egressRules(slot, largest, resolved).length < 128 * 1_024);
});
