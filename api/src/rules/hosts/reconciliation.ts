// Reconciliation of a sandbox's row with its VM on a host: one decision for each pair of their
// statuses. Pure. workers/hosts/reconciler.ts reads both in the order that makes the decisions
// safe, and carries them out.
//
//   row \ VM              not listed          running             asleep     dead
//   awake                 failed (2 lists)    egress, resize      wake       failed
//   stopped               failed (2 lists)    put to sleep        remains    remains, or failed
//   failed, can wake      no remains (2)      awake (host_lost),  stopped    remains
//                                             else put to sleep
//   failed as disk_lost   -                   put to sleep        stopped    remains, or destroy
//   failed for good,      -                   destroy             destroy    destroy
//   deleted
//
// A step in progress (provisioning, sleeping, waking, destroying; VM creating, sleeping, waking)
// changes nothing. No row, a row on another host or a VM of an older epoch is reported: rows are
// never removed and never move, so the database or the host was restored to an older state.
import type { VmDeathCode, VmStatus, VmView } from '@berth/protocol/host.ts';
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import { SANDBOX_STATES, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { sameSize } from '../sandboxes/allocation-target.ts';
import { deathOf, DISK_LOST, UNREACHABLE_REASONS, VM_LOST, type Reason } from '../sandboxes/machine-death.ts';

/** The source of a possible wake. */
type Remains = 'snapshot' | 'disk' | null;

export interface SandboxFacts {
  epoch: number;
  status: SandboxStatus;
  hostId: string | null;
  mode: string;
  wakesFrom: Remains;
  reasonCode: string | null;
  /** A resize step is in progress. */
  resizing: boolean;
  egressRevision: number;
  allocation: Allocation;
}

/** A host's report of a VM. */
export interface VmFacts {
  epoch: number;
  status: VmStatus;
  keeps?: VmView['keeps'];
  deathCode?: VmDeathCode | undefined;
  size: Allocation | null;
  /** Absent: it never had an egress policy. */
  egressRevision?: number | undefined;
}

/**
 * `look-again`: wait for a second list before declaring a VM lost. `note`: keep the status, update
 * what remains or the reason. `wake`: the host put its VMs to sleep before it stopped. `report`: no
 * repair is safe; an operator must act.
 */
export type Decision =
  | { do: 'nothing' | 'look-again' | 'set-egress' }
  | {
      do: 'change';
      to: 'failed' | 'stopped' | 'ready';
      reason: Reason | null;
      wakesFrom: Remains;
      size: Allocation | null;
    }
  | { do: 'note'; wakesFrom: Remains; reason: Reason | null }
  | { do: 'wake'; wakesFrom: Exclude<Remains, null> }
  | { do: 'adopt-size'; size: Allocation }
  | { do: 'put-to-sleep' | 'destroy'; epoch: number }
  | { do: 'report'; message: string };

const NOTHING: Decision = { do: 'nothing' };

/**
 * Compares a sandbox's row, if any, with the VM that the host lists under its id, if any.
 * `missedBefore`: the host's previous list lacked it too.
 */
export function reconcile(
  sandbox: SandboxFacts | undefined,
  vm: VmFacts | undefined,
  at: { hostId: string; missedBefore: boolean },
): Decision {
  if (vm === undefined || vm.status === 'destroyed')
    return sandbox === undefined || sandbox.hostId !== at.hostId ? NOTHING : missing(sandbox, at.missedBefore);

  if (sandbox === undefined) {
    return {
      do: 'report',
      message:
        'the database has no row of its sandbox: the host belongs to another database, or an older backup was restored',
    };
  }

  if (vm.epoch > sandbox.epoch) {
    return {
      do: 'report',
      message:
        `its host has epoch ${vm.epoch}, the database only ${sandbox.epoch}: ` +
        'an older backup of the database was restored',
    };
  }
  if (sandbox.hostId !== at.hostId && SANDBOX_STATES[sandbox.status].reservesDisk) {
    return {
      do: 'report',
      message:
        `its sandbox's row names ${sandbox.hostId ?? 'no host'}: ` +
        'the id of this host was lost, or its disk is a copy',
    };
  }
  const { awake, settled } = SANDBOX_STATES[sandbox.status];
  if (!settled) return NOTHING;
  if (awake) return againstAwake(sandbox, vm);
  if (sandbox.status === 'stopped') return againstStopped(sandbox, vm);
  if (sandbox.status === 'failed') return againstFailed(sandbox, vm);
  return { do: 'destroy', epoch: sandbox.epoch };
}

function missing(sandbox: SandboxFacts, missedBefore: boolean): Decision {
  const { awake, settled } = SANDBOX_STATES[sandbox.status];
  const expected =
    settled && (awake || sandbox.status === 'stopped' || (sandbox.status === 'failed' && sandbox.wakesFrom !== null));
  if (!expected) return NOTHING;
  if (!missedBefore) return { do: 'look-again' };
  if (sandbox.status === 'failed') return { do: 'note', wakesFrom: null, reason: DISK_LOST };
  return failed(awake ? VM_LOST : DISK_LOST, null);
}

function againstAwake(sandbox: SandboxFacts, vm: VmFacts): Decision {
  switch (vm.status) {
    case 'running':
      if ((vm.egressRevision ?? 0) < sandbox.egressRevision) return { do: 'set-egress' };
      return vm.size === null || sandbox.resizing || sameSize(vm.size, sandbox.allocation)
        ? NOTHING
        : { do: 'adopt-size', size: vm.size };
    case 'asleep':
      // An ephemeral sandbox, too: its time is not over.
      return { do: 'wake', wakesFrom: vm.keeps === 'disk' ? 'disk' : 'snapshot' };
    case 'dead':
      return failed(deathOf(vm), remains(sandbox, vm));
    default:
      return NOTHING;
  }
}

function againstStopped(sandbox: SandboxFacts, vm: VmFacts): Decision {
  switch (vm.status) {
    case 'running':
      // A wake completed after it was abandoned. Its caller received that the sandbox sleeps, so
      // put it back to sleep.
      return { do: 'put-to-sleep', epoch: sandbox.epoch };
    case 'asleep':
    case 'dead': {
      const left = remains(sandbox, vm);
      if (left === null) return failed(DISK_LOST, null);
      return left === sandbox.wakesFrom ? NOTHING : { do: 'note', wakesFrom: left, reason: null };
    }
    default:
      return NOTHING;
  }
}

function againstFailed(sandbox: SandboxFacts, vm: VmFacts): Decision {
  const turnedUp = sandbox.reasonCode !== null && UNREACHABLE_REASONS.has(sandbox.reasonCode);
  // The host may have failed to read the record for a while: an unlisted VM may still exist.
  const diskTurnedUp = sandbox.reasonCode === DISK_LOST.code && vm.keeps !== 'nothing';
  if (sandbox.wakesFrom === null && !turnedUp && !diskTurnedUp) return { do: 'destroy', epoch: sandbox.epoch };
  const left = remains(sandbox, vm);
  switch (vm.status) {
    case 'running':
      return turnedUp
        ? { do: 'change', to: 'ready', reason: null, wakesFrom: null, size: vm.size }
        : { do: 'put-to-sleep', epoch: sandbox.epoch };
    case 'asleep':
      return left === null
        ? { do: 'destroy', epoch: sandbox.epoch }
        : { do: 'change', to: 'stopped', reason: null, wakesFrom: left, size: null };
    case 'dead':
      if (turnedUp || diskTurnedUp) return { do: 'note', wakesFrom: left, reason: deathOf(vm) };
      return left === sandbox.wakesFrom ? NOTHING : { do: 'note', wakesFrom: left, reason: null };
    default:
      return NOTHING;
  }
}

function failed(reason: Reason, wakesFrom: Remains): Decision {
  return { do: 'change', to: 'failed', reason, wakesFrom, size: null };
}

/**
 * The source of a wake of the VM. Ephemeral sandboxes are never woken, so nothing remains of them.
 */
function remains(sandbox: SandboxFacts, vm: VmFacts): Remains {
  if (sandbox.mode === 'ephemeral' || vm.keeps === 'nothing') return null;
  return vm.keeps ?? (vm.status === 'asleep' ? 'snapshot' : null);
}
