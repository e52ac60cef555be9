// Invariants of every call: its wire is unchanged for sleeping guests and running hosts, it has
// limits, and each caller waits longer than the daemon it calls.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CALLS } from '../../src/calls/all.ts';
import { deadlineOf, pathOf, type Side } from '../../src/calls/define.ts';
import { PROTOCOL_VERSION } from '../../src/guest-limits.ts';
import { clone, cloneKey, guestCloneCall } from '../../src/calls/clones.ts';
import { guestPort, openPort } from '../../src/calls/connections.ts';
import { guestMetricsCall, vmMetricsCall } from '../../src/calls/metrics.ts';

const served = (side: Side): string[] =>
  CALLS.filter(({ target }) => target === side || target === 'pass-through')
    .map((call) => `${call.method} ${pathOf(call, side)}`)
    .toSorted();

test('the wire format of the guest daemon is the one that a sleeping guest speaks', () => {
  assert.deepEqual(served('guest'), [
    'DELETE /file',
    'DELETE /processes/{processId}',
    'GET /agents',
    'GET /agents/{sessionId}',
    'GET /agents/{sessionId}/output',
    'GET /agents/{sessionId}/turns',
    'GET /agents/{sessionId}/turns/{turnId}',
    'GET /clone/output',
    'GET /file',
    'GET /file/part',
    'GET /file/stat',
    'GET /file/stream',
    'GET /files',
    'GET /files/changes',
    'GET /files/entries',
    'GET /health',
    'GET /metrics',
    'GET /ports/{port}',
    'GET /processes',
    'GET /processes/{processId}',
    'GET /processes/{processId}/output',
    'GET /processes/{processId}/stream',
    'GET /terminal',
    'POST /agents/{sessionId}/answer',
    'POST /agents/{sessionId}/approvals',
    'POST /agents/{sessionId}/interrupt',
    'POST /agents/{sessionId}/messages',
    'POST /agents/{sessionId}/start',
    'POST /agents/{sessionId}/turns/{turnId}/void',
    'POST /clone',
    'POST /clone/end',
    'POST /clone/key',
    'POST /exec',
    'POST /file/mode',
    'POST /file/move',
    'POST /folder',
    'POST /identity',
    'POST /processes/{processId}/input',
    'POST /processes/{processId}/signal',
    'POST /processes/{processId}/size',
    'POST /run',
    'POST /size',
    'POST /template',
    'POST /wake',
    'PUT /agents/bridges/{sha256}',
    'PUT /file',
    'PUT /processes/{processId}',
    'PUT /variables/{variablesId}',
  ]);
});

test('the wire format of the host daemon is the one that a running API speaks', () => {
  assert.deepEqual(served('host'), [
    'DELETE /vms/{vmId}',
    'DELETE /vms/{vmId}/file',
    'DELETE /vms/{vmId}/processes/{processId}',
    'GET /host',
    'GET /vms',
    'GET /vms/{vmId}',
    'GET /vms/{vmId}/agents',
    'GET /vms/{vmId}/agents/{sessionId}',
    'GET /vms/{vmId}/agents/{sessionId}/output',
    'GET /vms/{vmId}/agents/{sessionId}/turns',
    'GET /vms/{vmId}/agents/{sessionId}/turns/{turnId}',
    'GET /vms/{vmId}/clone/output',
    'GET /vms/{vmId}/file',
    'GET /vms/{vmId}/file/part',
    'GET /vms/{vmId}/file/stat',
    'GET /vms/{vmId}/file/stream',
    'GET /vms/{vmId}/files',
    'GET /vms/{vmId}/files/changes',
    'GET /vms/{vmId}/files/entries',
    'GET /vms/{vmId}/metrics',
    'GET /vms/{vmId}/metrics/history',
    'GET /vms/{vmId}/ports/{port}',
    'GET /vms/{vmId}/processes',
    'GET /vms/{vmId}/processes/{processId}',
    'GET /vms/{vmId}/processes/{processId}/output',
    'GET /vms/{vmId}/processes/{processId}/stream',
    'GET /vms/{vmId}/ssh-host-key',
    'GET /vms/{vmId}/terminal',
    'POST /streams/close',
    'POST /vms/{vmId}/agents/{sessionId}/answer',
    'POST /vms/{vmId}/agents/{sessionId}/approvals',
    'POST /vms/{vmId}/agents/{sessionId}/interrupt',
    'POST /vms/{vmId}/agents/{sessionId}/messages',
    'POST /vms/{vmId}/agents/{sessionId}/start',
    'POST /vms/{vmId}/agents/{sessionId}/turns/{turnId}/void',
    'POST /vms/{vmId}/clone',
    'POST /vms/{vmId}/console',
    'POST /vms/{vmId}/egress',
    'POST /vms/{vmId}/exec',
    'POST /vms/{vmId}/file/mode',
    'POST /vms/{vmId}/file/move',
    'POST /vms/{vmId}/folder',
    'POST /vms/{vmId}/processes/{processId}/input',
    'POST /vms/{vmId}/processes/{processId}/signal',
    'POST /vms/{vmId}/processes/{processId}/size',
    'POST /vms/{vmId}/resize',
    'POST /vms/{vmId}/run',
    'POST /vms/{vmId}/sleep',
    'POST /vms/{vmId}/wake',
    'PUT /vms/{vmId}',
    'PUT /vms/{vmId}/file',
    'PUT /vms/{vmId}/model-access',
    'PUT /vms/{vmId}/processes/{processId}',
    'PUT /vms/{vmId}/variables/{variablesId}',
  ]);
});

test('every call has one name, a known version, and the limits that its form needs', () => {
  assert.equal(new Set(CALLS.map(({ name, target }) => `${target} ${name}`)).size, CALLS.length);
  for (const call of CALLS) {
    const { name, since, body, upload, requestBytes, form, responseBytes, upgrade, response } = call;
    assert.ok(since >= 1 && since <= PROTOCOL_VERSION, name);
    assert.equal(requestBytes !== undefined, body !== undefined || upload === true, name);
    assert.equal(responseBytes !== undefined, form !== 'upgrade', name);
    assert.equal(upgrade !== undefined, form === 'upgrade', name);
    assert.equal(response !== undefined, form === 'json' || form === 'keepalive', name);
  }
});

test('each caller waits longer than the daemon that it calls', () => {
  for (const call of CALLS) {
    const body = { timeoutSeconds: 7 };
    const own = call.deadlineMs + (call.timeoutField === undefined ? 0 : 7_000);
    assert.ok(deadlineOf(call, 'guest', body) > own, call.name);
    if (call.target === 'pass-through')
      assert.ok(deadlineOf(call, 'host', body) > deadlineOf(call, 'guest', body), call.name);
  }
});

test('a host waits for its guest within its own deadline', () => {
  assert.equal(vmMetricsCall.deadlineMs, deadlineOf(guestMetricsCall, 'guest'));
  assert.equal(openPort.deadlineMs, 2 * deadlineOf(guestPort, 'guest'));
  const body = { timeoutSeconds: 7 };
  const inGuest = deadlineOf(cloneKey, 'guest') + deadlineOf(guestCloneCall, 'guest', body);
  assert.equal(deadlineOf(clone, 'host', body) - clone.marginMs, inGuest);
});
