// Every cell of (status of the row × status of the VM): the repair if they disagree, and none if
// they agree.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SANDBOX_STATES, sandboxStatus, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { vmDeathCode, vmStatus } from '@berth/protocol/host.ts';
import { deathOf } from '../../../src/rules/sandboxes/machine-death.ts';
import { reconcile, type Decision, type VmFacts, type SandboxFacts } from '../../../src/rules/hosts/reconciliation.ts';

const SIZE = { vcpu: 1, memoryGb: 1, diskGb: 10 };
const LARGER = { vcpu: 2, memoryGb: 2, diskGb: 10 };
const HERE = { hostId: 'here', missedBefore: false };

type VmStatusOrAbsent = VmFacts['status'] | 'missing' | 'missing again';
const VM_STATUSES: readonly VmStatusOrAbsent[] = [...vmStatus.options, 'missing', 'missing again'];
/** Kinds of failed rows: final, with a disk, lost from sight, and with a disk lost from sight. */
type Row =
  | Exclude<SandboxStatus, 'failed'>
  | 'failed for good'
  | 'failed with its disk'
  | 'failed as host_lost'
  | 'failed as disk_lost';
const ROWS: readonly Row[] = [
  ...sandboxStatus.options.filter((status) => status !== 'failed'),
  'failed for good',
  'failed with its disk',
  'failed as host_lost',
  'failed as disk_lost',
];

function rowOf(row: Row, changed: Partial<SandboxFacts> = {}): SandboxFacts {
  const status: SandboxStatus = row.startsWith('failed') ? 'failed' : (row as SandboxStatus);
  const reasonCode =
    row === 'failed for good'
      ? 'create_failed'
      : row === 'failed with its disk'
        ? 'guest_panic'
        : row === 'failed as host_lost'
          ? 'host_lost'
          : row === 'failed as disk_lost'
            ? 'disk_lost'
            : null;
  const wakesFrom =
    row === 'stopped' ? 'snapshot' : row === 'failed with its disk' || row === 'failed as host_lost' ? 'disk' : null;
  return {
    epoch: 5,
    status,
    hostId: 'here',
    mode: 'persistent',
    wakesFrom,
    reasonCode,
    resizing: false,
    egressRevision: 0,
    allocation: SIZE,
    ...changed,
  };
}

function machineOf(status: VmFacts['status'], changed: Partial<VmFacts> = {}): VmFacts {
  const keeps = status === 'asleep' ? 'snapshot' : status === 'dead' ? 'disk' : undefined;
  const death = status === 'dead' ? { deathCode: 'out_of_memory' as const } : {};
  return { epoch: 5, status, keeps, size: SIZE, ...death, ...changed };
}

const decide = (row: SandboxFacts | undefined, status: VmStatusOrAbsent): Decision =>
  status === 'missing' || status === 'missing again'
    ? reconcile(row, undefined, { hostId: 'here', missedBefore: status === 'missing again' })
    : reconcile(row, machineOf(status), HERE);

/** Prints a decision on one line, for a readable table. */
function describeDecision(decision: Decision): string {
  switch (decision.do) {
    case 'change':
      return `${decision.to}${end(decision)}`;
    case 'note':
      return `note${end(decision)}`;
    case 'wake':
      return `wake from ${decision.wakesFrom}`;
    case 'put-to-sleep':
    case 'destroy':
      return `${decision.do} ${decision.epoch}`;
    default:
      return decision.do;
  }
}

/** The reason, if any, and the snapshot to wake from. */
function end({ reason, wakesFrom }: Decision & { do: 'change' | 'note' }): string {
  return `${reason === null ? '' : `:${reason.code}`} wakes from ${wakesFrom ?? 'nothing'}`;
}

const AT_WORK = { creating: 'nothing', sleeping: 'nothing', waking: 'nothing' } as const;
const NEVER = 'nothing';
/** Hosts never list `destroyed`; a listed one counts as absent. */
const untouched = Object.fromEntries(VM_STATUSES.map((status) => [status, NEVER])) as Record<VmStatusOrAbsent, string>;
const unclaimed: Record<VmStatusOrAbsent, string> = {
  ...(Object.fromEntries(VM_STATUSES.map((status) => [status, 'destroy 5'])) as Record<VmStatusOrAbsent, string>),
  destroyed: 'nothing',
  missing: 'nothing',
  'missing again': 'nothing',
};
const awake: Record<VmStatusOrAbsent, string> = {
  ...AT_WORK,
  running: 'nothing',
  asleep: 'wake from snapshot',
  dead: 'failed:out_of_memory wakes from disk',
  destroyed: 'look-again',
  missing: 'look-again',
  'missing again': 'failed:machine_lost wakes from nothing',
};

const EXPECTED: Record<Row, Record<VmStatusOrAbsent, string>> = {
  provisioning: untouched,
  sleeping: untouched,
  waking: untouched,
  destroying: untouched,
  running: awake,
  ready: awake,
  stopped: {
    ...AT_WORK,
    running: 'put-to-sleep 5',
    asleep: 'nothing',
    dead: 'note wakes from disk',
    destroyed: 'look-again',
    missing: 'look-again',
    'missing again': 'failed:disk_lost wakes from nothing',
  },
  'failed for good': unclaimed,
  deleted: unclaimed,
  'failed with its disk': {
    ...AT_WORK,
    running: 'put-to-sleep 5',
    asleep: 'stopped wakes from snapshot',
    dead: 'nothing',
    destroyed: 'look-again',
    missing: 'look-again',
    'missing again': 'note:disk_lost wakes from nothing',
  },
  'failed as host_lost': {
    ...AT_WORK,
    running: 'ready wakes from nothing',
    asleep: 'stopped wakes from snapshot',
    dead: 'note:out_of_memory wakes from disk',
    destroyed: 'look-again',
    missing: 'look-again',
    'missing again': 'note:disk_lost wakes from nothing',
  },
  'failed as disk_lost': {
    ...AT_WORK,
    running: 'put-to-sleep 5',
    asleep: 'stopped wakes from snapshot',
    dead: 'note:out_of_memory wakes from disk',
    destroyed: 'nothing',
    missing: 'nothing',
    'missing again': 'nothing',
  },
};

for (const row of ROWS) {
  for (const vm of VM_STATUSES) {
    test(`a sandbox that is ${row} and a VM that is ${vm}: ${EXPECTED[row][vm]}`, () => {
      assert.equal(describeDecision(decide(rowOf(row), vm)), EXPECTED[row][vm]);
    });
  }
}

for (const status of vmStatus.options.filter((status) => status !== 'destroyed')) {
  test(`a VM that is ${status} without a sandbox row is reported and left alone`, () => {
    assert.equal(reconcile(undefined, machineOf(status, { epoch: 4 }), HERE).do, 'report');
  });

  test(`a VM that is ${status} on the wrong host is left alone, unless its sandbox is deleted`, () => {
    for (const row of ROWS.filter((row) => row !== 'deleted'))
      assert.equal(reconcile(rowOf(row, { hostId: 'elsewhere' }), machineOf(status), HERE).do, 'report', row);

    assert.deepEqual(reconcile(rowOf('deleted', { hostId: 'elsewhere' }), machineOf(status), HERE), {
      do: 'destroy',
      epoch: 5,
    });
  });

  test(`a VM that is ${status} with a newer epoch than its sandbox is reported and left alone`, () => {
    for (const row of ROWS)
      assert.equal(reconcile(rowOf(row), machineOf(status, { epoch: 6 }), HERE).do, 'report', row);
  });
}

test('a VM with an older egress policy than its row gets the newer one', () => {
  const decideFor = (row: number, vm: number | undefined): string =>
    reconcile(rowOf('ready', { egressRevision: row }), machineOf('running', { egressRevision: vm }), HERE).do;
  assert.deepEqual(
    [decideFor(2, 1), decideFor(1, undefined), decideFor(1, 1), decideFor(1, 2)],
    ['set-egress', 'set-egress', 'nothing', 'nothing'],
  );
});

test('an awake sandbox may have a newer epoch than its VM: a resize is pending or was lost', () => {
  assert.equal(reconcile(rowOf('ready'), machineOf('running', { epoch: 2 }), HERE).do, 'nothing');
  assert.equal(
    describeDecision(reconcile(rowOf('ready'), machineOf('dead', { epoch: 2 }), HERE)),
    'failed:out_of_memory wakes from disk',
  );
});

test('a running VM of another size updates its row, unless a step is changing it', () => {
  const vm = machineOf('running', { size: LARGER });
  assert.deepEqual(reconcile(rowOf('ready'), vm, HERE), { do: 'adopt-size', size: LARGER });
  assert.equal(reconcile(rowOf('ready', { resizing: true }), vm, HERE).do, 'nothing');
  assert.equal(reconcile(rowOf('ready'), machineOf('running', { size: null }), HERE).do, 'nothing');
});

test('a VM that returns from a lost host brings its size', () => {
  const decision = reconcile(rowOf('failed as host_lost'), machineOf('running', { size: LARGER }), HERE);
  assert.deepEqual(decision, { do: 'change', to: 'ready', reason: null, wakesFrom: null, size: LARGER });
});

test('an ephemeral sandbox keeps no wake source; one on a returning host continues', () => {
  const row = rowOf('ready', { mode: 'ephemeral' });
  assert.equal(describeDecision(reconcile(row, machineOf('dead'), HERE)), 'failed:out_of_memory wakes from nothing');
  assert.equal(describeDecision(reconcile(row, machineOf('asleep'), HERE)), 'wake from snapshot');
  const lost = rowOf('failed as host_lost', { mode: 'ephemeral', wakesFrom: null });
  assert.equal(describeDecision(reconcile(lost, machineOf('running'), HERE)), 'ready wakes from nothing');
  const dead = reconcile(lost, machineOf('dead'), HERE);
  assert.equal(describeDecision(dead), 'note:out_of_memory wakes from nothing');
  const noted = rowOf('failed for good', { mode: 'ephemeral', reasonCode: 'out_of_memory' });
  assert.equal(describeDecision(reconcile(noted, machineOf('dead'), HERE)), 'destroy 5');
});

test('a dead VM without a disk leaves nothing, in every status that kept something', () => {
  const vm = machineOf('dead', { keeps: 'nothing' });
  assert.equal(describeDecision(reconcile(rowOf('stopped'), vm, HERE)), 'failed:disk_lost wakes from nothing');
  assert.equal(describeDecision(reconcile(rowOf('failed with its disk'), vm, HERE)), 'note wakes from nothing');
  assert.equal(describeDecision(reconcile(rowOf('ready'), vm, HERE)), 'failed:out_of_memory wakes from nothing');
  assert.equal(describeDecision(reconcile(rowOf('failed as disk_lost'), vm, HERE)), 'destroy 5');
});

test('an unusable snapshot leaves the disk', () => {
  assert.equal(
    describeDecision(reconcile(rowOf('stopped'), machineOf('asleep', { keeps: 'disk' }), HERE)),
    'note wakes from disk',
  );
  assert.equal(
    describeDecision(reconcile(rowOf('ready'), machineOf('asleep', { keeps: 'disk' }), HERE)),
    'wake from disk',
  );
});

test('every decision is a transition of the state table', () => {
  for (const row of ROWS) {
    for (const vm of VM_STATUSES) {
      const facts = rowOf(row);
      const decision = decide(facts, vm);
      if (decision.do === 'change')
        assert.ok(SANDBOX_STATES[facts.status].next.includes(decision.to), `${row} and ${vm}`);
    }
  }
});

test("every cause of death has a sentence with the host's detail", () => {
  for (const deathCode of vmDeathCode.options) {
    assert.equal(deathOf({ deathCode }).code, deathCode);
    assert.match(deathOf({ deathCode }).message, /^(it|its|the) .+\. Wake the sandbox if /);
  }
  assert.equal(deathOf({}).code, 'process_ended');
});
