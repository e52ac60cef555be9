// Which machine a host lists may be destroyed, and with which epoch.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sandboxStatus, SANDBOX_STATES, type SandboxStatus } from '@berth/contract/sandbox-state.ts';
import type { VmView } from '@berth/protocol/host.ts';
import { reapingEpoch } from '../../src/workers/host-health.ts';

const ID = 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa';
const vm = (epoch: number, status: VmView['status'] = 'running'): VmView => ({ id: ID, epoch, status });
const sandbox = (epoch: number, status: SandboxStatus, hostId: string | null = 'here') => ({ id: ID, epoch, status, hostId });

test('a machine without a sandbox is destroyed with its own epoch', () => {
  assert.equal(reapingEpoch(vm(4), undefined, 'here'), 4);
});

test('a machine is left alone in every status in which its sandbox holds one, and destroyed in every other', () => {
  for (const status of sandboxStatus.options) {
    const expected = SANDBOX_STATES[status].holdsMachine ? undefined : 3;
    assert.equal(reapingEpoch(vm(2), sandbox(3, status), 'here'), expected, status);
    assert.equal(reapingEpoch(vm(3, 'dead'), sandbox(3, status), 'here'), expected, status);
  }
});

test('a machine of a newer epoch than its sandbox is left alone', () => {
  assert.equal(reapingEpoch(vm(5), sandbox(4, 'deleted'), 'here'), undefined);
});

test('a machine on another host than its sandbox says is destroyed', () => {
  assert.equal(reapingEpoch(vm(1), sandbox(1, 'ready', 'elsewhere'), 'here'), 1);
});
