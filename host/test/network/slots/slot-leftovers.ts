// Traces of slots and VMs on a test's private host, where everything belongs to the test
// (private-host.ts).
import { readdirSync, readFileSync } from 'node:fs';
import { nullOn } from '@berth/os/errors.ts';
import { END_OF_SLOT_UIDS, FIRST_SLOT_UID } from '../../../src/network/slots/slot.ts';
import { hostState } from './host-state.ts';

/** A sentence for each namespace, device, registry entry and process. */
export function slotLeftovers(): string[] {
  const { namespaces, devices, entries, drafts } = hostState();
  return [
    ...namespaces.map((number) => `namespace berth${number}`),
    ...devices.map((number) => `device bv${number}`),
    ...entries.map((number) => `slot ${number} in the registry`),
    ...drafts.map((name) => `draft ${name} in the registry`),
    ...slotProcesses(),
  ];
}

/** Processes with the uid of any slot. */
export function slotProcesses(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const status = readStatus(pid);
      const uid = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? 0);
      const ended = /^State:\s+[ZX]/m.test(status);
      return uid >= FIRST_SLOT_UID && uid < END_OF_SLOT_UIDS && !ended ? [`process ${pid} of uid ${uid}`] : [];
    });
}

function readStatus(pid: string): string {
  return nullOn(['ENOENT', 'ESRCH'], () => readFileSync(`/proc/${pid}/status`, 'latin1')) ?? '';
}
