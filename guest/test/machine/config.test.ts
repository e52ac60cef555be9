// The daemon's settings are those of a VM unless the environment changes them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import { readConfig } from '../../src/machine/config.ts';

test('an empty environment gives the settings of a VM', () => {
  assert.deepEqual(readConfig({}), {
    address: '0.0.0.0',
    port: GUEST_PORT,
    portFile: undefined,
    codeFolder: '/code',
    runFolder: '/run/berth',
    identityMarkerFile: '/var/lib/berth/identity-complete',
    cloneFolder: '/run/berth-clone',
    cloneStateFile: '/var/lib/berth/clone.json',
    cloneOrphanMs: 20_000,
    user: { name: 'berth', uid: 1_000, gid: 1_000, home: '/home/berth' },
    stateFolder: '/var/lib/berth',
    agentsFile: '/opt/berth/agents/agents.json',
    agentCgroups: '/sys/fs/cgroup/agents',
    agentIdleMs: 1_800_000,
    agentPingMs: 10_000,
    appliesIdentity: true,
    maxRunning: 256,
    maxTerminals: 64,
    maxLeftOpen: 1_024,
    spaceEveryMs: 10_000,
  });
});

test('an implausible value is refused by name', () => {
  for (const [name, value] of [
    ['BERTH_GUEST_PORT', '70000'],
    ['BERTH_GUEST_PORT', ''],
    ['BERTH_GUEST_UID', '-1'],
    ['BERTH_GUEST_UID', '1e3'],
    ['BERTH_GUEST_IDENTITY', 'maybe'],
  ] as const)
    assert.throws(() => readConfig({ [name]: value }), new RegExp(name));
});
