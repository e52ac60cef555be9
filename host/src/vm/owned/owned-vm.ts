// A VM in the daemon's memory: its record as on disk, and state that lives only as long as the
// daemon. Data and accessors only; the verbs are in lifecycle/.
import type { ModelAccess } from '@berth/protocol/calls/model-access.ts';
import { OPEN_EGRESS, type EgressDenied, type EgressPolicy } from '@berth/protocol/egress.ts';
import type { VmSpec, VmView } from '@berth/protocol/host.ts';
import type { Logger } from 'pino';
import { growthOf, reservationOf, type Amounts, type HeldVm } from '../admission.ts';
import type { GuestClient, Guests } from '../../guest/client.ts';
import type { HostError } from '../host-error.ts';
import type { WarmPool } from '../../pool/pool.ts';
import type { FenceDirectory } from '../directory/fence.ts';
import type { VmDirectory, VmRecord } from '../directory/record.ts';
import type { ExistingVm, GuestEndpoint, VmDriver, VmEnd } from '../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import type { KnownStatus, KnownVm } from './fencing.ts';
import type { MetricsHistory } from './metrics-history.ts';
import type { GuestStreams } from '../../guest/guest-streams.ts';
import { SerialQueue } from '@berth/os/serial-queue.ts';

/** Deadline of each verb, from the first file to the guest's confirmation. */
export interface Deadlines {
  createMs: number;
  sleepMs: number;
  wakeMs: number;
  resizeMs: number;
  /** Timeout of an adopted guest's first response. */
  adoptMs: number;
}

export interface LifecycleParts {
  driver: VmDriver;
  directory: VmDirectory;
  fences: FenceDirectory;
  log: Logger;
  /** Encrypts disk and snapshots of each VM that is created from now on. */
  encryptDisks?: boolean;
  /** Warm pool; if absent, each create restores its own VM. */
  pool?: WarmPool;
  streams: GuestStreams;
  guests: Guests;
  /** Absent: the host has no model gateway. */
  models?: ModelGate;
  deadlines: Deadlines;
}

/** The model gateway. */
export interface ModelGate {
  /** Listens for a VM; requests wait until the access is set. */
  serve(vmId: string, listen: GuestEndpoint): Promise<void>;
  /** Resolves when the access is in force. */
  setAccess(vmId: string, access: ModelAccess): Promise<void>;
  /** Ends a VM's requests and forgets its access. Never rejects. */
  forget(vmId: string): Promise<void>;
}

/** The model gateway for one running VM. */
export interface VmModels {
  /** URL for an agent in the guest, once the gateway listens. */
  urlFor(agent: string): Promise<string>;
  setAccess(access: ModelAccess): Promise<void>;
  /** Version of the access in force; null: none yet. */
  readonly version: string | null;
  close(): void;
}

export interface ProcessWatch {
  process: ProcessIdentity;
  stop: AbortController;
  /** Resolves when the process exited; the value means nothing once `stop` is aborted. */
  gone: Promise<VmEnd>;
}

/** A verb in progress: callers with the same epoch join it, a destroy aborts it. */
interface Operation {
  status: 'creating' | 'sleeping' | 'waking' | 'resizing';
  epoch: number;
  /** Size after success, for admission. */
  size: Amounts;
  abort: AbortController;
  /** Settles with the verb; callers with the same epoch share the outcome. */
  done: Promise<void>;
}

export class OwnedVm {
  record: VmRecord;
  readonly queue = new SerialQueue();
  /** Null unless it is running. */
  guest: GuestClient | null = null;
  models: VmModels | null = null;
  watch: ProcessWatch | null = null;
  /**
   * `maybe`: a clone may be in progress in the guest. `accepted` settles when every clone call was
   * accepted or failed.
   */
  clone: { maybe: boolean; accepted: Promise<unknown> } = { maybe: false, accepted: Promise.resolve() };
  /** A controller per raw stream into the guest, open or opening; an abort closes the stream. */
  readonly streams = new Set<AbortController>();
  operation: Operation | null = null;
  /** Null before the first sample. */
  history: MetricsHistory | null = null;
  /** Revision of the egress policy in force while the recorded one is not; 0 if unknown. */
  formerEgress: number | null = null;
  /** Destroy in progress, and the newest epoch requested for it. */
  ending: { epoch: number; done: Promise<void> } | null = null;

  constructor(record: VmRecord) {
    this.record = record;
  }

  get id(): string {
    return this.record.id;
  }

  /** The driver's id of this VM. */
  get machineId(): string {
    return this.record.machineId ?? this.record.id;
  }

  /**
   * Starts a verb in the VM's turn and marks it as in progress at once. Awaiting `done` is
   * optional: the record holds the outcome too.
   */
  begin(operation: Omit<Operation, 'abort' | 'done'>, work: (abort: AbortController) => Promise<void>): Operation {
    const abort = new AbortController();
    const begun: Operation = { ...operation, abort, done: Promise.resolve() };
    begun.done = this.queue
      .run(() => work(abort))
      .finally(() => {
        if (this.operation === begun) this.operation = null;
      });
    begun.done.catch(() => undefined);
    this.operation = begun;
    return begun;
  }

  /** Closes the streams at once: none may outlive the VM or write to it during a capture. */
  closeStreams(why: HostError): void {
    for (const stream of this.streams) stream.abort(why);
  }

  /** Argument of the driver's verbs on an existing VM. */
  existing(folder: string, signal: AbortSignal): ExistingVm {
    return { id: this.machineId, folder, state: this.record.driverState ?? {}, signal };
  }

  known(): NonNullable<KnownVm['record']> {
    const { spec, everRan, epoch, status } = this.record;
    const newest = Math.max(epoch, this.operation?.epoch ?? 0, this.ending?.epoch ?? 0);
    const known: KnownStatus = this.ending === null ? (this.operation?.status ?? status) : 'destroying';
    return { spec, everRan, epoch: newest, status: known };
  }

  /** @param now figures of a running VM; null if unknown or none */
  view(now: { cpuMs: number | null; egressDenied: EgressDenied | null } | null = null): VmView {
    const { epoch, status, spec: full } = this.known();
    const { egress, ...spec } = full;
    const { reason, deathCode, lastAliveUnixMs, everRan, snapshot, woke } = this.record;
    const shown = {
      id: this.id,
      epoch,
      spec,
      ...(egress === undefined ? {} : { egressRevision: this.formerEgress ?? egress.revision }),
      ...(woke === null ? {} : { woke }),
    };
    switch (status) {
      case 'destroying':
        // The wire has no state for "being destroyed": report it as no longer usable but not yet
        // gone.
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
        return {
          ...shown,
          status: 'running',
          ...(typeof now?.cpuMs === 'number' ? { cpuMs: Math.round(now.cpuMs) } : {}),
          ...(this.record.models && this.models !== null ? { modelVersion: this.models.version } : {}),
          ...(now?.egressDenied ? { egressDenied: now.egressDenied } : {}),
        };
      default:
        return { ...shown, status };
    }
  }

  held(): HeldVm[] {
    const size = sizeOf(this.record.spec);
    const reserves = reservationOf(size);
    const { status } = this.known();
    switch (status) {
      case 'creating':
        return [{ holds: 'growing', reserves }];
      case 'waking':
        return [{ holds: 'growing', reserves: reservationOf(largerOf(size, this.operation?.size ?? size)) }];
      case 'resizing':
        return [
          { holds: 'using', reserves },
          { holds: 'added', reserves: growthOf(size, this.operation?.size ?? size) },
        ];
      case 'asleep':
        return [{ holds: 'disk', reserves }];
      case 'dead':
      case 'destroying':
        if (this.record.freed) return this.record.everRan ? [{ holds: 'disk', reserves }] : [];

        return [{ holds: 'using', reserves }];
      default:
        return [{ holds: 'using', reserves }];
    }
  }

  /** Resources held once the verb in progress has succeeded. */
  heldSoon(): HeldVm[] {
    const size = sizeOf(this.record.spec);
    switch (this.known().status) {
      case 'creating':
      case 'waking':
      case 'resizing':
        return [{ holds: 'using', reserves: reservationOf(largerOf(size, this.operation?.size ?? size)) }];
      case 'sleeping':
        return [{ holds: 'disk', reserves: reservationOf(size) }];
      case 'destroying':
        return [];
      default:
        return this.held();
    }
  }
}

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
    models: false,
  };
}

export function sizeOf({ vcpu, memoryMib, diskGib }: Amounts): Amounts {
  return { vcpu, memoryMib, diskGib };
}

/** The egress policy on record. */
export function egressOf({ spec }: Pick<VmRecord, 'spec'>): EgressPolicy {
  return spec.egress ?? OPEN_EGRESS;
}

/**
 * The requested policy, unless the VM has a newer one. A control plane of an earlier release
 * requests none and keeps it.
 */
export function newerEgress(requested: EgressPolicy | undefined, recorded: EgressPolicy = OPEN_EGRESS): EgressPolicy {
  return requested === undefined || requested.revision < recorded.revision ? recorded : requested;
}

export function largerOf(a: Amounts, b: Amounts): Amounts {
  return {
    vcpu: Math.max(a.vcpu, b.vcpu),
    memoryMib: Math.max(a.memoryMib, b.memoryMib),
    diskGib: Math.max(a.diskGib, b.diskGib),
  };
}
