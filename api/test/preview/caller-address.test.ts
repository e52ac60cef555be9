// Client address that an app receives: the peer of the service, seen through trusted proxies.
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { CallerAddress } from '../../src/preview/caller-address.ts';

const TRUSTED = ['10.0.0.0/8', '192.0.2.7', 'fd00::/8'];

function of(remoteAddress: string, said?: string): string {
  const request = { socket: { remoteAddress }, headers: said === undefined ? {} : { 'x-forwarded-for': said } };
  return new CallerAddress(TRUSTED).of(request as unknown as IncomingMessage);
}

test('X-Forwarded-For of an untrusted peer is ignored', () => {
  assert.equal(of('198.51.100.1'), '198.51.100.1');
  assert.equal(of('198.51.100.1', '6.6.6.6'), '198.51.100.1');
  assert.equal(of('::ffff:198.51.100.1', '6.6.6.6'), '198.51.100.1');
  assert.equal(of('2001:db8::1', '6.6.6.6'), '2001:db8::1');
});

test('X-Forwarded-For is followed through trusted proxies only', () => {
  assert.equal(of('10.1.2.3'), '10.1.2.3');
  assert.equal(of('10.1.2.3', '203.0.113.9'), '203.0.113.9');
  assert.equal(of('::ffff:10.1.2.3', '6.6.6.6, 203.0.113.9'), '203.0.113.9');
  assert.equal(of('10.1.2.3', '6.6.6.6, 203.0.113.9, 192.0.2.7'), '203.0.113.9');
  assert.equal(of('fd00::1', '6.6.6.6,2001:db8::5 , 10.9.9.9'), '2001:db8::5');
  assert.equal(of('10.1.2.3', '10.0.0.5, 10.0.0.6'), '10.0.0.5');
});

test('an invalid address ends the evaluation of X-Forwarded-For', () => {
  assert.equal(of('10.1.2.3', 'unknown'), '10.1.2.3');
  assert.equal(of('10.1.2.3', '203.0.113.9, _hidden, 10.0.0.6'), '10.0.0.6');
  assert.equal(of('10.1.2.3', ''), '10.1.2.3');
});
