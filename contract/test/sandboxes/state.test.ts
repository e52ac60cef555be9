// Consistency of the state table and of the diagram in its header.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  SANDBOX_ACTION_RULES,
  SANDBOX_STATES,
  sandboxStatus,
  statusesAllowing,
  statusesBefore,
  statusesThat,
} from '../../src/sandboxes/state.ts';

test('destroying is legal in every status except destroying and deleted', () => {
  const live = sandboxStatus.options.filter((status) => status !== 'destroying' && status !== 'deleted');
  assert.deepEqual(statusesBefore('destroying'), live);
  assert.deepEqual(statusesAllowing('destroy'), statusesBefore('destroying'));
  assert.deepEqual(statusesBefore('deleted'), ['destroying']);
});

test('deleted has no successor, and no status returns to provisioning', () => {
  assert.deepEqual(SANDBOX_STATES.deleted.next, []);
  assert.deepEqual(statusesBefore('provisioning'), []);
});

test('deleted is reachable from every status', () => {
  for (const status of sandboxStatus.options) {
    const reached = new Set([status]);
    for (const at of reached) for (const next of SANDBOX_STATES[at].next) reached.add(next);
    assert.ok(reached.has('deleted'), status);
  }
});

test('exactly the awake statuses are metered, hold a VM and accept commands', () => {
  for (const status of sandboxStatus.options) {
    const { awake, metered, reservesCompute } = SANDBOX_STATES[status];
    assert.equal(metered, awake);
    assert.equal(SANDBOX_ACTION_RULES.exec[status] === 'do', awake);
    if (awake) assert.ok(reservesCompute);
  }
});

test('host capacity is reserved in every status with a VM, but not for stopped or failed sandboxes', () => {
  assert.deepEqual(statusesThat('reservesCompute'), [
    'provisioning',
    'running',
    'ready',
    'sleeping',
    'waking',
    'destroying',
  ]);
});

test('disk space is reserved until the sandbox is deleted, and with every VM', () => {
  assert.deepEqual(
    statusesThat('reservesDisk'),
    sandboxStatus.options.filter((status) => status !== 'deleted'),
  );
});

test('sleep ends in stopped or awake, and only stopped and failed sandboxes can wake', () => {
  assert.deepEqual(statusesAllowing('wake'), ['stopped', 'failed']);
  assert.deepEqual(statusesBefore('waking'), statusesAllowing('wake'));
  assert.deepEqual(statusesAllowing('sleep'), statusesThat('awake'));
  assert.deepEqual(statusesBefore('sleeping'), statusesAllowing('sleep'));
});

test('awake and starting sandboxes count as concurrent; stopped, failed and destroying ones do not', () => {
  assert.deepEqual(statusesThat('concurrent'), ['provisioning', 'running', 'ready', 'sleeping', 'waking']);
});
