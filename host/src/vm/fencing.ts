// Pure: what a create or destroy with an epoch means, given what is on record of that VM. Does nothing itself.
// An epoch is a number the control plane raises; whoever acts with an older one is late and is refused.
import type { VmSpec } from '@berth/protocol/host.ts';
import type { VmRecord } from './directory/record.ts';

/** What is known of one VM: its record, if it has one, and the epoch it was destroyed under, if it was. */
export interface KnownVm {
  record: Pick<VmRecord, 'epoch' | 'spec' | 'status' | 'everRan'> | null;
  destroyedEpoch: number | null;
}

/**
 * `start`: make it. `join`: the call under way makes it. `answer`: it runs already. `replace`: a newer epoch; end the old one, then make it.
 * `came-down`: it ran under this epoch and died; making it anew would pass an empty disk off as the old one.
 */
export type CreateVerdict =
  | { do: 'start' | 'join' | 'answer' | 'replace' | 'came-down' }
  | { do: 'refuse'; code: 'stale_epoch' | 'epoch_conflict' | 'superseded'; message: string };

export function judgeCreate(known: KnownVm, epoch: number, spec: VmSpec): CreateVerdict {
  const { record, destroyedEpoch } = known;
  if (destroyedEpoch !== null && epoch <= destroyedEpoch) {
    return {
      do: 'refuse',
      code: 'stale_epoch',
      message: `the VM was destroyed under epoch ${destroyedEpoch}; a create needs a newer one than that`,
    };
  }
  if (record === null) {
    return { do: 'start' };
  }
  if (epoch < record.epoch) {
    return { do: 'refuse', code: 'stale_epoch', message: `epoch ${epoch} is older than ${record.epoch}, the newest seen for this VM` };
  }
  if (epoch > record.epoch) {
    return { do: 'replace' };
  }
  if (record.status === 'destroying') {
    return { do: 'refuse', code: 'superseded', message: 'the VM is being destroyed under this epoch' };
  }
  if (!sameSpec(record.spec, spec)) {
    return { do: 'refuse', code: 'epoch_conflict', message: `epoch ${epoch} was used with another spec` };
  }
  if (record.status === 'dead') {
    return { do: record.everRan ? 'came-down' : 'start' };
  }
  return { do: record.status === 'running' ? 'answer' : 'join' };
}

/** `remember`: gone already, but the epoch must be remembered. */
export type DestroyVerdict = { do: 'end' | 'remember' } | { do: 'refuse'; code: 'stale_epoch'; message: string };

export function judgeDestroy(known: KnownVm, epoch: number): DestroyVerdict {
  const newest = Math.max(known.record?.epoch ?? 0, known.destroyedEpoch ?? 0);
  if (epoch < newest) {
    return { do: 'refuse', code: 'stale_epoch', message: `epoch ${epoch} is older than ${newest}, the newest seen for this VM` };
  }
  return { do: known.record === null ? 'remember' : 'end' };
}

function sameSpec(a: VmSpec, b: VmSpec): boolean {
  return (
    a.vcpu === b.vcpu &&
    a.memoryMib === b.memoryMib &&
    a.diskGib === b.diskGib &&
    a.hostname === b.hostname &&
    a.sshAuthorizedKeys.length === b.sshAuthorizedKeys.length &&
    a.sshAuthorizedKeys.every((key, index) => key === b.sshAuthorizedKeys[index])
  );
}
