// Resources held by a destroy, from every status: never less than the host may hold, and no VM that
// the host reported gone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SANDBOX_STATES, sandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { vmDeathCode } from '@berth/protocol/host.ts';
import { destroyHolds } from '../../../src/rules/sandboxes/destroy-holds.ts';

const REMAINS = ['snapshot', 'disk', null] as const;

test('a sandbox with a VM holds its resources until its destroy is complete', () => {
  for (const status of sandboxStatus.options.filter((one) => SANDBOX_STATES[one].reservesCompute)) {
    for (const wakesFrom of REMAINS)
      assert.equal(destroyHolds({ status, reasonCode: null, wakesFrom }), 'machine', status);
  }
});

test('an asleep sandbox holds its disk only, and after an abandoned wake a whole VM', () => {
  assert.equal(destroyHolds({ status: 'stopped', reasonCode: null, wakesFrom: 'snapshot' }), 'disk');
  assert.equal(destroyHolds({ status: 'stopped', reasonCode: null, wakesFrom: 'disk' }), 'disk');
  assert.equal(destroyHolds({ status: 'stopped', reasonCode: 'wake_failed', wakesFrom: 'snapshot' }), 'machine');
});

test('a sandbox whose host reports the VM dead or never made holds what remains of it', () => {
  for (const reasonCode of [...vmDeathCode.options, 'create_failed', 'insufficient_capacity']) {
    assert.equal(destroyHolds({ status: 'failed', reasonCode, wakesFrom: 'disk' }), 'disk', reasonCode);
    assert.equal(destroyHolds({ status: 'failed', reasonCode, wakesFrom: null }), 'nothing', reasonCode);
  }
});

test('a sandbox that failed otherwise may have a running VM and holds its resources', () => {
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
