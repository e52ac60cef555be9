// The model of a sandbox is silent while everything is as expected, and reports each contradiction.
// Chaos runs rely on both.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { contentHash, parseReadBack, type ReadBack, type Written } from './guest-work.ts';
import { KnownSandbox } from './known-sandbox.ts';
import { Report } from '../judging/report.ts';
import { FaultLog } from '../judging/faults.ts';

function view(status: Sandbox['status'], changes: Partial<Sandbox> = {}): Sandbox {
  return {
    id: 'sbx_a',
    status,
    statusReason: status === 'failed' ? { code: 'process_ended', message: 'QEMU ended' } : null,
    wakesFrom: status === 'stopped' ? 'snapshot' : status === 'failed' ? 'disk' : null,
    lastWake: null,
    ttlSeconds: null,
    expiresAt: null,
    allocated_vcpu: 1,
    ...changes,
  } as Sandbox;
}

function world(status: Sandbox['status'] = 'ready'): {
  faults: FaultLog;
  report: Report;
  sandbox: KnownSandbox;
  see: (next: Sandbox) => void;
} {
  const faults = new FaultLog();
  const report = new Report(() => undefined);
  const sandbox = new KnownSandbox(view('provisioning'), 'key', Date.now(), faults, report);
  const see = (next: Sandbox): void => sandbox.observe(next, Date.now(), Date.now());
  see(view(status));
  return { faults, report, sandbox, see };
}

const FILE: Written = { name: 'c1-1', where: 'synced', bytes: 100_000 };
const MEMORY_FILE: Written = { name: 'c1-2', where: 'tmpfs', bytes: 3 };
const LIFE = { token: 'c1-life-1', count: 5, alive: true };
const found = (changes: Partial<ReadBack> = {}): ReadBack => ({
  life: LIFE,
  processors: 1,
  disk: new Map([[FILE.name, contentHash(FILE)]]),
  tmpfs: new Map([[MEMORY_FILE.name, contentHash(MEMORY_FILE)]]),
  ...changes,
});

function inhabited(): ReturnType<typeof world> {
  const made = world();
  made.sandbox.startedLife(LIFE.token, 1, Date.now());
  made.sandbox.wrote(FILE, true);
  made.sandbox.wrote(MEMORY_FILE, true);
  return made;
}

test('a successful sleep and wake are no contradiction', () => {
  const { report, sandbox, see } = inhabited();
  sandbox.intend('sleep', Date.now());
  sandbox.acknowledged('sleep');
  see(view('sleeping'));
  see(view('stopped'));
  sandbox.intend('wake', Date.now());
  see(view('waking'));
  see(view('ready', { lastWake: { at: 'now', from: 'snapshot', reason: null } }));
  sandbox.verify(found(), Date.now());
  assert.deepEqual(report.findings, []);
});

const CONTRADICTIONS: Record<string, [string, (made: ReturnType<typeof world>) => void]> = {
  'a status that nobody asked for': ['contradiction', ({ see }) => see(view('stopped'))],
  'a failure without a cause': ['contradiction', ({ see }) => see(view('failed'))],
  'a sandbox that is gone though nobody destroyed it': ['sandbox-lost', ({ see }) => see(view('deleted'))],
  'a sandbox that is unknown': ['sandbox-lost', ({ sandbox }) => sandbox.missing()],
  'a sleep that was acknowledged and did not come': [
    'contradiction',
    ({ sandbox, see }) => {
      sandbox.intend('sleep', Date.now());
      sandbox.acknowledged('sleep');
      see(view('ready'));
    },
  ],
  'a destroyed one that comes back': [
    'contradiction',
    ({ sandbox, see }) => {
      sandbox.intend('destroy', Date.now());
      sandbox.acknowledged('destroy');
      see(view('deleted'));
      see(view('ready'));
    },
  ],
  'a file that is not there': ['file-lost', ({ sandbox }) => sandbox.verify(found({ disk: new Map() }), Date.now())],
  'a file with another content': [
    'file-lost',
    ({ sandbox }) => sandbox.verify(found({ disk: new Map([[FILE.name, 'other']]) }), Date.now()),
  ],
  'a file in memory that is not there': [
    'file-lost',
    ({ sandbox }) => sandbox.verify(found({ tmpfs: new Map() }), Date.now()),
  ],
  'a file of somebody else': [
    'contradiction',
    ({ sandbox }) => sandbox.verify(found({ disk: new Map([...found().disk, ['c2-9', 'x']]) }), Date.now()),
  ],
  'processes that are gone': [
    'contradiction',
    ({ sandbox }) => sandbox.verify(found({ life: { ...LIFE, alive: false } }), Date.now()),
  ],
  'processes that went back in time': [
    'contradiction',
    ({ sandbox }) => {
      sandbox.verify(found(), Date.now());
      sandbox.verify(found({ life: { ...LIFE, count: 2 } }), Date.now());
    },
  ],
  'a wake from the disk without a cause': [
    'contradiction',
    ({ sandbox, see }) => {
      sandbox.intend('sleep', Date.now());
      see(view('stopped'));
      sandbox.intend('wake', Date.now());
      see(view('ready', { lastWake: { at: 'now', from: 'disk', reason: 'no snapshot' } }));
    },
  ],
  'an ephemeral one that outlives its expiry': [
    'contradiction',
    ({ see }) => see(view('ready', { ttlSeconds: 5, expiresAt: new Date(Date.now() - 5_000).toISOString() })),
  ],
};

for (const [what, [finding, happen]] of Object.entries(CONTRADICTIONS)) {
  test(`${what} is reported`, () => {
    const made = inhabited();
    happen(made);
    assert.ok(made.report.count(finding as 'contradiction') > 0, JSON.stringify(made.report.findings));
  });
}

test('a killed VM excuses losing memory, and never losing flushed data', () => {
  const { faults, report, sandbox, see } = inhabited();
  faults.end(faults.begin('qemu-killed', 'sbx_a'));
  see(view('failed'));
  sandbox.intend('wake', Date.now());
  see(view('ready', { lastWake: { at: 'now', from: 'disk', reason: 'QEMU ended' } }));
  sandbox.verify(found({ life: null, tmpfs: new Map() }), Date.now());
  assert.deepEqual(report.findings, []);
  sandbox.verify(found({ life: null, tmpfs: new Map(), disk: new Map() }), Date.now());
  assert.equal(report.count('file-lost'), 1);
});

test('a death while the host daemon was down may be reported late, one long before may not', () => {
  const minutes = (ago: number): number => Date.now() - ago * 60_000;
  for (const [deathAgo, found] of [
    [2, 0],
    [5, 1],
  ] as const) {
    const { faults, report, see } = world();
    const away = faults.begin('host', null, minutes(3));
    const death = faults.begin('qemu-killed', 'sbx_a', minutes(deathAgo));
    death.toMs = death.fromMs;
    faults.end(away);
    see(view('ready'));
    see(view('failed'));
    assert.equal(report.findings.length, found, `${deathAgo} minutes ago`);
  }
});

test('a killed host daemon excuses no lost process', () => {
  const { faults, report, sandbox } = inhabited();
  faults.end(faults.begin('host'));
  sandbox.verify(found({ life: null }), Date.now());
  assert.equal(report.count('contradiction'), 1);
});

test('the output of a guest is parsed, and truncated output is not misread', () => {
  const stdout = `life t\ncount 7\nalive\nprocessors 2\ndisk ${'a'.repeat(64)}  c1-1\nend\n`;
  assert.deepEqual(parseReadBack(stdout), {
    life: { token: 't', count: 7, alive: true },
    processors: 2,
    disk: new Map([['c1-1', 'a'.repeat(64)]]),
    tmpfs: new Map(),
  });
  assert.equal(parseReadBack(stdout.replace('end\n', '')), null);
});
