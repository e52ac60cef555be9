// A late message never has an epoch that its host may still act on, and only a refusal for its
// epoch is a correct response.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { epochQuery, hostBodyOf } from '@berth/protocol/calls/define.ts';
import { createVm, resizeVm, sleepVm, wakeVm } from '@berth/protocol/calls/vms.ts';
import { vmId } from '@berth/protocol/host.ts';
import { lateFault, lateRequest, type Fenced } from './late-verb.ts';
import { LATE_VERBS, disturbancesOf, type LateVerb } from '../model/plan.ts';
import { Random } from '../../world/random.ts';

const ID = `sbx_${'a'.repeat(26)}`;
const SPEC = { vcpu: 2, memoryMib: 2_048, diskGib: 12, hostname: 'one', sshAuthorizedKeys: [] };
const BODIES = {
  create: hostBodyOf(createVm),
  sleep: hostBodyOf(sleepVm),
  wake: hostBodyOf(wakeVm),
  resize: hostBodyOf(resizeVm),
};

function planned(count: number): LateVerb[] {
  const disturbances = disturbancesOf(new Random('late'), 1_000, ['late-verb']);
  return Array.from({ length: count }, () => disturbances.next().value).flatMap((each) =>
    each.kind === 'late-verb' ? each.messages : [],
  );
}

function fenced(epoch: number, status: Fenced['status']): Fenced {
  return { id: ID, epoch, status, ...(status === 'destroyed' ? {} : { spec: SPEC }) };
}

test('every late call follows the protocol, with an epoch older than its host’s', () => {
  const verbs = new Set<string>();
  const epochs = new Set<number>();
  for (const late of planned(200)) {
    const request = lateRequest(late, fenced(4, 'running'));
    assert.ok(request !== null && request.epoch >= 1 && request.epoch < 4, JSON.stringify(request));
    const { pathname, searchParams } = new URL(request.path, 'http://host');
    vmId.parse(pathname.split('/')[2]);
    if (late.verb === 'destroy') assert.equal(epochQuery.parse(Object.fromEntries(searchParams)).epoch, request.epoch);
    else assert.equal(BODIES[late.verb].parse(request.body).epoch, request.epoch);
    verbs.add(late.verb);
    epochs.add(request.epoch);
  }
  assert.deepEqual([...verbs].sort(), [...LATE_VERBS].sort());
  assert.deepEqual(epochs, new Set([1, 2, 3]));
});

test('no call is late for a VM in its first epoch', () => {
  for (const late of planned(50)) assert.equal(lateRequest(late, fenced(1, 'running')), null);
});

test('after a destroy its own epoch is stale for everything but the destroy', () => {
  const highest = new Map<string, number>();
  for (const late of planned(200)) {
    const request = lateRequest(late, fenced(2, 'destroyed'));
    assert.ok(request !== null);
    highest.set(late.verb, Math.max(highest.get(late.verb) ?? 0, request.epoch));
  }
  assert.deepEqual(Object.fromEntries(highest), { create: 2, sleep: 2, wake: 2, resize: 2, destroy: 1 });
});

test('only an epoch refusal is a correct response to a late call', () => {
  const refusal = (code: string): string => JSON.stringify({ error: { code, message: 'no' } });
  assert.equal(lateFault({ status: 409, text: refusal('stale_epoch') }), null);
  assert.equal(lateFault({ status: 200, text: '{}' }), 'done');
  assert.equal(lateFault({ status: 409, text: refusal('vm_not_running') }), 'other');
  assert.equal(lateFault({ status: 500, text: 'not JSON' }), 'other');
});
