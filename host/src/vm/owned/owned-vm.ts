// One VM as the daemon holds it in memory: its record as written on disk, and what lives only as
// long as the daemon. Holds data and names; the verbs are in lifecycle-*.ts.
import type { VmSpec, VmView } from '@berth/protocol/host.ts';
import type { Logger } from 'pino';
import type { Amounts, HeldVm } from '../admission.ts';
import type { GuestClient } from '../../guest/client.ts';
import type { HostError } from '../host-error.ts';
import type { WarmPool } from '../../pool/pool.ts';
import type { FenceDirectory } from '../directory/fence.ts';
import type { VmDirectory, VmRecord } from '../directory/record.ts';
import type { ExistingVm, VmDriver, VmEnd } from '../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import type { KnownStatus, KnownVm } from './fencing.ts';
import type { GuestStreams } from '../../guest/guest-streams.ts';
import { Turns } from '@berth/os/turns.ts';

/** How long each verb may take, from the first file to the guest's read-back. */
export interface Deadlines {
  createMs: number;
  sleepMs: number;
  wakeMs: number;
  resizeMs: number;
  /** How long an adopted guest may take to answer. */
  adoptMs: number;
}

/** What the verbs work with. */
export interface LifecycleParts {
  driver: VmDriver;
  directory: VmDirectory;
  fences: FenceDirectory;
  log: Logger;
  /** Restored machines that wait for a create; absent: each create restores its own. */
  pool?: WarmPool;
  streams: GuestStreams;
  deadlines: Deadlines;
}

/** The process of a VM under watch. */
export interface Watch {
  process: ProcessIdentity;
  stop: AbortController;
  /** Resolves with how the process ended; with anything once `stop` was aborted. */
  gone: Promise<VmEnd>;
}

/** A verb under way: callers with the same epoch join it, a destroy aborts it. */
interface Doing {
  status: 'creating' | 'sleeping' | 'waking' | 'resizing';
  epoch: number;
  /** The size it will have if all goes well, for admission. */
  size: Amounts;
  abort: AbortController;
  /** Over when this settles; callers of the same epoch share how it went. */
  done: Promise<void>;
}

export class OwnedVm {
  record: VmRecord;
  readonly turns = new Turns();
  /** While it is running. */
  guest: GuestClient | null = null;
  watch: Watch | null = null;
  /**
   * A clone may be under way in its guest; settled when every call for one was accepted or has
   * failed.
   */
  clone: { maybe: boolean; accepted: Promise<unknown> } = { maybe: false, accepted: Promise.resolve() };
  /** One for each raw stream into its guest, open or being opened; an abort closes it. */
  readonly streams = new Set<AbortController>();
  doing: Doing | null = null;
  /** A destroy under way, and the newest epoch it was asked for with. */
  ending: { epoch: number; done: Promise<void> } | null = null;

  constructor(record: VmRecord) {
    this.record = record;
  }

  get id(): string {
    return this.record.id;
  }

  /** By what name the driver knows its machine. */
  get machineId(): string {
    return this.record.machineId ?? this.record.id;
  }

  /**
   * Begins a verb in the VM's turn, and says at once that it is under way. Nobody has to wait for
   * `done`: how it went is in the record too.
   */
  begin(doing: Omit<Doing, 'abort' | 'done'>, work: (abort: AbortController) => Promise<void>): Doing {
    const abort = new AbortController();
    const begun: Doing = { ...doing, abort, done: Promise.resolve() };
    begun.done = this.turns
      .take(() => work(abort))
      .finally(() => {
        if (this.doing === begun) this.doing = null;
      });
    begun.done.catch(() => undefined);
    this.doing = begun;
    return begun;
  }

  /**
   * Closes its streams at once: nothing of the machine may outlive it, and what is captured must
   * not be written to any more.
   */
  closeStreams(why: HostError): void {
    for (const stream of this.streams) stream.abort(why);
  }

  /** As the driver's verbs on a machine that exists want it. */
  existing(folder: string, signal: AbortSignal): ExistingVm {
    return { id: this.machineId, folder, state: this.record.driverState ?? {}, signal };
  }

  known(): NonNullable<KnownVm['record']> {
    const { spec, everRan, epoch, status } = this.record;
    const newest = Math.max(epoch, this.doing?.epoch ?? 0, this.ending?.epoch ?? 0);
    const known: KnownStatus = this.ending === null ? (this.doing?.status ?? status) : 'destroying';
    return { spec, everRan, epoch: newest, status: known };
  }

  /** @param cpuMs processor time of its process so far, where it is known */
  view(cpuMs: number | null = null): VmView {
    const { epoch, status, spec } = this.known();
    const { reason, deathCode, lastAliveUnixMs, everRan, snapshot, woke } = this.record;
    const shown = { id: this.id, epoch, spec, ...(woke === null ? {} : { woke }) };
    switch (status) {
      case 'destroying':
        // The wire has no word for "being destroyed": it is no longer of use and not yet gone.
        return {
          ...shown,
          status: 'dead',
          reason: 'it is being destroyed',
          deathCode: deathCode ?? 'process_ended',
          keeps: 'nothing',
        };
      case 'dead':
        return {
          ...shown,
          status,
          reason: reason ?? 'unknown',
          deathCode: deathCode ?? (everRan ? 'process_ended' : 'not_created'),
          keeps: everRan ? 'disk' : 'nothing',
          ...(lastAliveUnixMs === null ? {} : { lastAliveUnixMs }),
        };
      case 'asleep':
        return { ...shown, status, keeps: snapshot ? 'snapshot' : 'disk' };
      case 'running':
      case 'resizing':
        return { ...shown, status: 'running', ...(cpuMs === null ? {} : { cpuMs: Math.round(cpuMs) }) };
      default:
        return { ...shown, status };
    }
  }

  /** What admission must count for it. */
  held(): HeldVm[] {
    const size = sizeOf(this.record.spec);
    const { status } = this.known();
    switch (status) {
      case 'creating':
        return [{ holds: 'growing', size }];
      case 'waking':
        return [{ holds: 'growing', size: largerOf(size, this.doing?.size ?? size) }];
      case 'resizing':
        return [
          { holds: 'using', size },
          { holds: 'added', size: beyond(size, this.doing?.size ?? size) },
        ];
      case 'asleep':
        return [{ holds: 'disk', size }];
      case 'dead':
      case 'destroying':
        if (this.record.freed) return this.record.everRan ? [{ holds: 'disk', size }] : [];

        return [{ holds: 'using', size }];
      default:
        return [{ holds: 'using', size }];
    }
  }
}

/** The record of a VM that was just let in. */
export function newRecord(id: string, epoch: number, spec: VmSpec): VmRecord {
  return {
    version: 1,
    id,
    epoch,
    spec,
    status: 'creating',
    machineId: null,
    reason: null,
    deathCode: null,
    lastAliveUnixMs: null,
    everRan: false,
    freed: false,
    driverState: null,
    snapshot: false,
    sleptState: null,
    continued: false,
    sizeAsked: null,
    woke: null,
  };
}

export function sizeOf({ vcpu, memoryMib, diskGib }: Amounts): Amounts {
  return { vcpu, memoryMib, diskGib };
}

/** What `to` has beyond `from`; nothing where it has less. */
export function beyond(from: Amounts, to: Amounts): Amounts {
  return {
    vcpu: Math.max(0, to.vcpu - from.vcpu),
    memoryMib: Math.max(0, to.memoryMib - from.memoryMib),
    diskGib: Math.max(0, to.diskGib - from.diskGib),
  };
}

export function largerOf(a: Amounts, b: Amounts): Amounts {
  return {
    vcpu: Math.max(a.vcpu, b.vcpu),
    memoryMib: Math.max(a.memoryMib, b.memoryMib),
    diskGib: Math.max(a.diskGib, b.diskGib),
  };
}
