// Pure: decides on a verb with an epoch from the VM's record and the verb in progress. The control
// plane raises the epoch; a caller with an older one is late and refused.
import type { VmSpec } from '@berth/protocol/host.ts';
import type { VmRecord } from '../directory/record.ts';

/** `resizing`: running, with a resize in progress. */
export type KnownStatus = VmRecord['status'] | 'resizing';

/**
 * Known facts of one VM: its record, if any, and the epoch it was destroyed under, if any. Epoch
 * and status include the verb in progress.
 */
export interface KnownVm {
  record: (Pick<VmRecord, 'epoch' | 'spec' | 'everRan'> & { status: KnownStatus }) | null;
  destroyedEpoch: number | null;
}

type Size = Pick<VmSpec, 'vcpu' | 'memoryMib' | 'diskGib'>;

interface Refusal<Code extends string> {
  do: 'refuse';
  code: Code;
  message: string;
}

/**
 * `start`: create it. `join`: an in-flight call creates it. `answer`: it already runs. `replace`: a
 * newer epoch; end the old one, then create it. `came-down`: it ran under this epoch and died;
 * creating it anew would pass off an empty disk as the old one. `wake`: the host put it to sleep
 * before the caller knew that it ran.
 */
type CreateDecision =
  | { do: 'start' | 'join' | 'answer' | 'replace' | 'ran-and-died' | 'wake' }
  | Refusal<'stale_epoch' | 'epoch_conflict' | 'superseded'>;

export function decideCreate(known: KnownVm, epoch: number, spec: VmSpec): CreateDecision {
  const { record, destroyedEpoch } = known;
  if (destroyedEpoch !== null && epoch <= destroyedEpoch) return destroyed(destroyedEpoch);

  if (record === null) return { do: 'start' };

  if (epoch < record.epoch) return stale(epoch, record.epoch);

  if (epoch > record.epoch) return { do: 'replace' };

  if (record.status === 'destroying')
    return { do: 'refuse', code: 'superseded', message: 'the VM is being destroyed under this epoch' };

  if (record.status === 'sleeping' || record.status === 'waking' || record.status === 'resizing') {
    return {
      do: 'refuse',
      code: 'epoch_conflict',
      message: `epoch ${epoch} was used for another verb: the VM is ${record.status}`,
    };
  }

  if (!sameSpec(record.spec, spec))
    return { do: 'refuse', code: 'epoch_conflict', message: `epoch ${epoch} was used with another spec` };

  if (record.status === 'asleep') return { do: 'wake' };

  if (record.status === 'dead') return { do: record.everRan ? 'ran-and-died' : 'start' };

  return { do: record.status === 'running' ? 'answer' : 'join' };
}

/**
 * Decision on a verb for an existing VM. `start`: run it. `join`: an in-flight call with the same
 * epoch runs it. `wait`: another verb is in progress; decide again after it. `answer`: already in
 * that state; raise the epoch to the call's.
 */
export type Verdict<Code extends string> =
  | { do: 'start' | 'join' | 'wait' | 'answer' }
  | Refusal<Code | 'stale_epoch' | 'superseded'>;

export function decideSleep(known: KnownVm, epoch: number): Verdict<'vm_not_running'> {
  const late = tooLate(known, epoch);
  if (late !== null) return late;

  switch (known.record?.status) {
    case 'running':
      return { do: 'start' };
    case 'sleeping':
      return { do: epoch === known.record.epoch ? 'join' : 'wait' };
    case 'asleep':
      return { do: 'answer' };
    case 'creating':
    case 'waking':
    case 'resizing':
      return { do: 'wait' };
    default:
      return notRunning(known);
  }
}

export function decideWake(known: KnownVm, epoch: number): Verdict<'nothing_to_wake'> {
  const late = tooLate(known, epoch);
  if (late !== null) return late;

  const { record } = known;
  switch (record?.status) {
    case 'asleep':
      return { do: 'start' };
    case 'dead':
      return record.everRan ? { do: 'start' } : nothingToWake('the VM never started: it has no disk');
    case 'waking':
      return { do: epoch === record.epoch ? 'join' : 'wait' };
    case 'running':
      return { do: 'answer' };
    case 'creating':
    case 'sleeping':
    case 'resizing':
      return { do: 'wait' };
    default:
      return nothingToWake('this host has neither a snapshot nor a disk of the VM');
  }
}

export function decideResize(
  known: KnownVm,
  epoch: number,
  size: Size,
): Verdict<'vm_not_running' | 'invalid_request' | 'epoch_conflict'> {
  const late = tooLate(known, epoch);
  if (late !== null) return late;

  const { record } = known;
  switch (record?.status) {
    case 'running': {
      const less = sizeParts.filter((part) => size[part] < record.spec[part]);
      if (less.length > 0) {
        const said = less.map((part) => `${part} ${size[part]} instead of ${record.spec[part]}`).join(', ');
        return { do: 'refuse', code: 'invalid_request', message: `a running VM cannot shrink: ${said}` };
      }
      return { do: sameSize(record.spec, size) ? 'answer' : 'start' };
    }
    case 'resizing':
      return { do: epoch === record.epoch ? 'join' : 'wait' };
    case 'creating':
    case 'sleeping':
    case 'waking':
      return { do: 'wait' };
    default:
      return notRunning(known);
  }
}

/** A policy applies in every status of a VM on record. Null: no refusal. */
export function decideEgress(
  known: KnownVm,
  epoch: number,
): Refusal<'stale_epoch' | 'superseded' | 'vm_not_running'> | null {
  return tooLate(known, epoch) ?? (known.record === null ? notRunning(known) : null);
}

/** `remember`: already gone, but record the epoch. */
type DestroyDecision = { do: 'end' | 'remember' } | Refusal<'stale_epoch'>;

export function decideDestroy(known: KnownVm, epoch: number): DestroyDecision {
  const newest = Math.max(known.record?.epoch ?? 0, known.destroyedEpoch ?? 0);
  if (epoch < newest) return stale(epoch, newest);

  return { do: known.record === null ? 'remember' : 'end' };
}

const sizeParts = ['vcpu', 'memoryMib', 'diskGib'] as const;

export function sameSize(a: Size, b: Size): boolean {
  return sizeParts.every((part) => a[part] === b[part]);
}

/** Refusal common to all verbs on an existing VM; null if none. */
function tooLate({ record, destroyedEpoch }: KnownVm, epoch: number): Refusal<'stale_epoch' | 'superseded'> | null {
  if (destroyedEpoch !== null && epoch <= destroyedEpoch) return destroyed(destroyedEpoch);

  if (record !== null && epoch < record.epoch) return stale(epoch, record.epoch);

  return record?.status === 'destroying'
    ? { do: 'refuse', code: 'superseded', message: 'the VM is being destroyed' }
    : null;
}

function stale(epoch: number, newest: number): Refusal<'stale_epoch'> {
  return {
    do: 'refuse',
    code: 'stale_epoch',
    message: `epoch ${epoch} is older than ${newest}, the newest seen for this VM`,
  };
}

function destroyed(epoch: number): Refusal<'stale_epoch'> {
  return {
    do: 'refuse',
    code: 'stale_epoch',
    message: `the VM was destroyed under epoch ${epoch}; use a newer epoch`,
  };
}

function notRunning({ record }: KnownVm): Refusal<'vm_not_running'> {
  return {
    do: 'refuse',
    code: 'vm_not_running',
    message: record === null ? 'there is no such VM on this host' : `the VM is ${record.status}`,
  };
}

function nothingToWake(message: string): Refusal<'nothing_to_wake'> {
  return { do: 'refuse', code: 'nothing_to_wake', message };
}

function sameSpec(a: VmSpec, b: VmSpec): boolean {
  return (
    sameSize(a, b) &&
    a.hostname === b.hostname &&
    a.sshAuthorizedKeys.length === b.sshAuthorizedKeys.length &&
    a.sshAuthorizedKeys.every((key, index) => key === b.sshAuthorizedKeys[index])
  );
}
