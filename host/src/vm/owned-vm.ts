// One VM as the daemon holds it in memory: its record as written on disk, and what lives only as long as the daemon.
// Holds data and names; the verbs are in lifecycle-*.ts.
import type { VmSpec, VmView } from '@berth/protocol/host.ts';
import type { Logger } from 'pino';
import type { HeldVm } from '../admission.ts';
import type { GuestClient } from '../guest/client.ts';
import type { FenceDirectory } from './directory/fence.ts';
import type { VmDirectory, VmRecord } from './directory/record.ts';
import type { VmDriver } from './driver.ts';
import type { KnownVm } from './fencing.ts';
import { Turns } from './turns.ts';

/** What the verbs work with. */
export interface LifecycleParts {
  driver: VmDriver;
  directory: VmDirectory;
  fences: FenceDirectory;
  log: Logger;
  /** For everything from the first file to the guest's read-back. */
  createDeadlineMs: number;
  /** How long an adopted guest may take to answer. */
  adoptDeadlineMs: number;
}

/** The process of a VM under watch. */
export interface Watch {
  stop: AbortController;
  /** Resolves with why the process ended; with anything once `stop` was aborted. */
  gone: Promise<string>;
}

export class OwnedVm {
  record: VmRecord;
  readonly turns = new Turns();
  /** While it is running. */
  guest: GuestClient | null = null;
  watch: Watch | null = null;
  /** A create under way: callers with the same epoch join it, a destroy aborts it. */
  creating: { abort: AbortController; done: Promise<void> } | null = null;
  /** A destroy under way, and the newest epoch it was asked for with. */
  ending: { epoch: number; done: Promise<void> } | null = null;

  constructor(record: VmRecord) {
    this.record = record;
  }

  get id(): string {
    return this.record.id;
  }

  known(): NonNullable<KnownVm['record']> {
    const { spec, everRan, epoch, status } = this.record;
    return this.ending === null
      ? { spec, everRan, epoch, status }
      : { spec, everRan, epoch: Math.max(epoch, this.ending.epoch), status: 'destroying' };
  }

  view(): VmView {
    const { epoch, status, spec } = this.known();
    // The wire has no word for "being destroyed": it is no longer of use and not yet gone.
    const dead = status === 'dead' || status === 'destroying';
    const reason = status === 'destroying' ? 'it is being destroyed' : (this.record.reason ?? 'unknown');
    return { id: this.id, epoch, status: dead ? 'dead' : status, spec, ...(dead ? { reason } : {}) };
  }

  /** What admission must count for it; null for nothing. */
  held(): HeldVm | null {
    const size = { vcpu: this.record.spec.vcpu, memoryMib: this.record.spec.memoryMib, diskGib: this.record.spec.diskGib };
    if (this.record.status === 'dead' && this.record.freed) {
      return this.record.everRan ? { holds: 'disk', size } : null;
    }
    return { holds: this.record.status === 'creating' ? 'growing' : 'using', size };
  }
}

/** The record of a VM that was just let in. */
export function newRecord(id: string, epoch: number, spec: VmSpec): VmRecord {
  return { version: 1, id, epoch, spec, status: 'creating', reason: null, everRan: false, freed: false, driverState: null };
}
