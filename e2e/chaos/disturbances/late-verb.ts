// Sends late messages to the host daemon, as if delayed by the network: verbs of the host protocol
// with an outdated epoch. A correct host responds `stale_epoch` and does nothing, whatever else is
// in progress; any other response is reported. No fault excuses a response that reports success.
import { vmList } from '@berth/protocol/calls/vms.ts';
import { hostError, vmView, type VmSpec, type VmView } from '@berth/protocol/host.ts';
import type { InstancePaths } from '@berth/machine/supervisor/instance.ts';
import type { KnownSandbox } from '../model/known-sandbox.ts';
import type { LateVerb } from '../model/plan.ts';
import { OneDaemon, type HostAnswer } from './one-daemon.ts';
import type { Report } from '../judging/report.ts';
import { SHARED_FAULTS, type FaultLog } from '../judging/faults.ts';

const MIB_PER_GIB = 1_024;
/** Size for a VM whose size the host no longer reports. */
const SOME_SPEC: VmSpec = { vcpu: 1, memoryMib: MIB_PER_GIB, diskGib: 10, hostname: 'late', sshAuthorizedKeys: [] };

/** State of a VM as the host reports it: its current epoch, or the epoch of its destroy. */
export type Fenced = Pick<VmView, 'id' | 'epoch' | 'status' | 'spec'>;

interface LateRequest {
  method: 'PUT' | 'POST' | 'DELETE';
  path: string;
  body?: unknown;
  epoch: number;
}

/** Builds the message for a VM in its reported state; null when no epoch is surely outdated. */
export function lateRequest(
  { verb, age, vcpu, memoryGb, diskGb }: LateVerb,
  { id, epoch, status, spec }: Fenced,
): LateRequest | null {
  // A destroy may be repeated under its own epoch; no other verb may follow it.
  const newest = status === 'destroyed' && verb !== 'destroy' ? epoch : epoch - 1;
  if (newest < 1) return null;
  const late = newest - Math.floor(age * newest);
  const size = { vcpu, memoryMib: memoryGb * MIB_PER_GIB, diskGib: diskGb };
  const path = `/vms/${id}`;
  const post = (what: string, body: object): LateRequest => ({
    method: 'POST',
    path: `${path}/${what}`,
    body,
    epoch: late,
  });
  switch (verb) {
    case 'create':
      // Repeats the first create, as far as the host still reports its fields.
      return { method: 'PUT', path, body: { epoch: late, spec: spec ?? SOME_SPEC }, epoch: late };
    case 'wake':
      return post(verb, { epoch: late, spec: { ...SOME_SPEC, ...spec, ...size } });
    case 'resize':
      return post(verb, { epoch: late, size });
    case 'sleep':
      return post(verb, { epoch: late });
    default:
      return { method: 'DELETE', path: `${path}?epoch=${late}`, epoch: late };
  }
}

/** Judges the response to a late message; null: correct. `done`: the host reports success. */
export function lateFault({ status, text }: HostAnswer): 'done' | 'other' | null {
  if (status >= 200 && status < 300) return 'done';
  try {
    return hostError.parse(JSON.parse(text)).error.code === 'stale_epoch' ? null : 'other';
  } catch {
    // Neither JSON nor an error of the protocol: the report quotes the text.
    return 'other';
  }
}

interface LateVerbParts {
  paths: InstancePaths;
  faults: FaultLog;
  report: Report;
  /** All sandboxes ever acknowledged. */
  sandboxes: () => KnownSandbox[];
}

export class LateVerbs {
  readonly #parts: LateVerbParts;

  constructor(parts: LateVerbParts) {
    this.#parts = parts;
  }

  /** Sends one message. Resolves when the response is judged, or when there is none to send. */
  async send(late: LateVerb): Promise<void> {
    const { paths, report, faults } = this.#parts;
    // A reading holds only for the daemon that returned it: a restarted daemon may have lost the
    // last epoch, if unwritten.
    const daemon = await OneDaemon.connect(paths);
    const sentMs = Date.now();
    let request: LateRequest | null = null;
    try {
      const target = await this.#target(late, daemon);
      request = target === null ? null : lateRequest(late, target);
      if (target === null || request === null) {
        report.note('late-verb: no sandbox has an epoch that is over');
        return;
      }
      report.counts.others += 1;
      report.note(`late-verb ${late.verb}${target.status === 'destroyed' ? ' of a destroyed one' : ''}`);
      const answer = await daemon.ask(request.method, request.path, request.body);
      const fault = lateFault(answer);
      if (fault === null) return;
      const what = `a late ${late.verb} of ${target.id} with epoch ${request.epoch}`;
      const had = `when its host had ${target.epoch} (${target.status})`;
      const done = fault === 'done' ? 'done' : 'not refused for its epoch';
      report.found('contradiction', `${what}, ${had}, was ${done}: ${answer.status} ${answer.text.slice(0, 300)}`);
    } catch (error) {
      const what = `late-verb ${late.verb}: no answer (${(error as Error).message})`;
      if (faults.excuses(SHARED_FAULTS, sentMs, Date.now())) report.note(what);
      else
        report.found('contradiction', `without any trouble, ${what}${request === null ? '' : ` to ${request.path}`}`);
    } finally {
      daemon.leave();
    }
  }

  /** Picks a VM of the wanted kind for which the verb can be late, or else one of the other. */
  async #target(late: LateVerb, daemon: OneDaemon): Promise<Fenced | null> {
    const destroyed = await this.#destroyed(late, daemon);
    if (late.ofDestroyed && destroyed !== null) return destroyed;
    const { vms } = vmList.parse(await daemon.read('/vms'));
    const fitting = vms.filter((vm) => lateRequest(late, vm) !== null);
    return fitting[Math.floor(late.pick * fitting.length)] ?? destroyed;
  }

  async #destroyed(late: LateVerb, daemon: OneDaemon): Promise<Fenced | null> {
    const ended = this.#parts.sandboxes().filter(({ status }) => status === 'deleted');
    const sandbox = ended[Math.floor(late.pick * ended.length)];
    if (sandbox === undefined) return null;
    // Absent: the sandbox never had a VM.
    const view = await daemon.read(`/vms/${sandbox.id}`);
    return view === null ? null : vmView.parse(view);
  }
}
