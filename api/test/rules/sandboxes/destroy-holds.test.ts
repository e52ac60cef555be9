// What a destroy holds, from every status: never less than may be on the host, and of what its host
// told to be gone no machine.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SANDBOX_STATES, sandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { vmDeathCode } from '@berth/protocol/host.ts';
import { destroyHolds } from '../../../src/rules/sandboxes/destroy-holds.ts';

const REMAINS = ['snapshot', 'disk', null] as const;

test('a sandbox that holds a machine holds it until its destroy is over', () => {
  for (const status of sandboxStatus.options.filter((one) => SANDBOX_STATES[one].holdsMachine)) {
    for (const wakesFrom of REMAINS)
      assert.equal(destroyHolds({ status, reasonCode: null, wakesFrom }), 'machine', status);
  }
});

test('one that sleeps holds its disk alone, and after a wake that was given up a machine: it may come late', () => {
  assert.equal(destroyHolds({ status: 'stopped', reasonCode: null, wakesFrom: 'snapshot' }), 'disk');
  assert.equal(destroyHolds({ status: 'stopped', reasonCode: null, wakesFrom: 'disk' }), 'disk');
  assert.equal(destroyHolds({ status: 'stopped', reasonCode: 'wake_failed', wakesFrom: 'snapshot' }), 'machine');
});

test('one whose host told that its machine is dead or was never made holds what is left of it', () => {
  for (const reasonCode of [...vmDeathCode.options, 'create_failed', 'insufficient_capacity']) {
    assert.equal(destroyHolds({ status: 'failed', reasonCode, wakesFrom: 'disk' }), 'disk', reasonCode);
    assert.equal(destroyHolds({ status: 'failed', reasonCode, wakesFrom: null }), 'nothing', reasonCode);
  }
});

test('one that failed otherwise may have a machine that runs, and holds it', () => {
  for (const reasonCode of [
    'host_lost',
    'machine_lost',
    'disk_lost',
    'host_unreachable',
    'host_timeout',
    'superseded',
    'toString',
    null,
  ]) {
    for (const wakesFrom of REMAINS)
      assert.equal(destroyHolds({ status: 'failed', reasonCode, wakesFrom }), 'machine', String(reasonCode));
  }
});
