// The state table agrees with itself and with the drawing in its header.
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

test('destroy outranks everything: it can follow every status that is not already on its way', () => {
  const live = sandboxStatus.options.filter((status) => status !== 'destroying' && status !== 'deleted');
  assert.deepEqual(statusesBefore('destroying'), live);
  assert.deepEqual(statusesAllowing('destroy'), statusesBefore('destroying'));
  assert.deepEqual(statusesBefore('deleted'), ['destroying']);
});

test('deleted is final, and nothing returns to provisioning', () => {
  assert.deepEqual(SANDBOX_STATES.deleted.next, []);
  assert.deepEqual(statusesBefore('provisioning'), []);
});

test('every status leads to deleted', () => {
  for (const status of sandboxStatus.options) {
    const reached = new Set([status]);
    for (const at of reached) for (const next of SANDBOX_STATES[at].next) reached.add(next);
    assert.ok(reached.has('deleted'), status);
  }
});

test('what is awake is metered, holds its machine and takes commands; nothing else is metered or takes commands', () => {
  for (const status of sandboxStatus.options) {
    const { awake, metered, holdsMachine } = SANDBOX_STATES[status];
    assert.equal(metered, awake);
    assert.equal(SANDBOX_ACTION_RULES.exec[status] === 'do', awake);
    if (awake) assert.ok(holdsMachine);
  }
});

test('a machine is reserved while it is made, awake, captured, restored or ended, and not for what sleeps or failed', () => {
  assert.deepEqual(statusesThat('holdsMachine'), [
    'provisioning',
    'running',
    'ready',
    'sleeping',
    'waking',
    'destroying',
  ]);
});

test('a disk is reserved until it is gone, and whatever holds a machine holds a disk', () => {
  assert.deepEqual(
    statusesThat('holdsDisk'),
    sandboxStatus.options.filter((status) => status !== 'deleted'),
  );
});

test('sleep leads to stopped and back to awake, and only what sleeps or lost its machine can be woken', () => {
  assert.deepEqual(statusesAllowing('wake'), ['stopped', 'failed']);
  assert.deepEqual(statusesBefore('waking'), statusesAllowing('wake'));
  assert.deepEqual(statusesAllowing('sleep'), statusesThat('awake'));
  assert.deepEqual(statusesBefore('sleeping'), statusesAllowing('sleep'));
});

test('what is under way or awake counts against the concurrent sandboxes, what sleeps, failed or ends does not', () => {
  assert.deepEqual(statusesThat('concurrent'), ['provisioning', 'running', 'ready', 'sleeping', 'waking']);
});
