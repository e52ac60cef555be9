// Facts about a sandbox that its row does not have: console, git's output, last events. Reads no
// guest: it wakes nothing and is no use of the sandbox.
import { DIAGNOSTICS_LIMITS, type SandboxDiagnostics } from '@berth/contract/diagnostics/diagnostics.ts';
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import { readConsole, type ConsoleMissing, type VmConsole } from '@berth/protocol/calls/vms.ts';
import { HostError, type HostFailureCode } from '../../hosts/error.ts';
import { shownEnd } from '../../rules/shown-text.ts';
import { selectLatestOfKinds } from '../../store/activity/feed.ts';
import { findCloneOutput, type CloneOutput } from '../../store/sandboxes/clone-outputs.ts';
import type { ActivityRow } from '../../store/database/schema.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { UnsealError } from '../context/sealed.ts';
import { existingDataKey } from '../sandboxes/data-key.ts';

/** Events that change status, size or clone. */
const KINDS: readonly ActivityKind[] = [
  'sandbox_created',
  'sandbox_running',
  'sandbox_ready',
  'sandbox_failed',
  'sandbox_clone_started',
  'sandbox_clone_finished',
  'sandbox_clone_failed',
  'sandbox_sleep_requested',
  'sandbox_sleep_failed',
  'sandbox_stopped',
  'sandbox_wake_requested',
  'sandbox_wake_failed',
  'sandbox_woken',
  'sandbox_recovered',
  'sandbox_resize_requested',
  'sandbox_resized',
  'sandbox_resize_deferred',
  'sandbox_renewed',
  'sandbox_expired',
  'sandbox_destroy_requested',
  'sandbox_deleted',
];
/** A sandbox has any number of other entries, such as commands. */
const WITHIN_ENTRIES = 1_000;

type Console = Pick<SandboxDiagnostics, 'console' | 'consoleMissing'>;

interface FoundDiagnostics extends Console {
  cloneOutput: CloneOutput | undefined;
  events: ActivityRow[];
}

/** Never fails for a host: the response has the reason. */
export async function findDiagnostics(
  context: ServiceContext,
  sandbox: LocatedSandboxRow,
  signal: AbortSignal,
): Promise<FoundDiagnostics> {
  const [cloneOutput, events, console] = await Promise.all([
    findCloneOutput(context.db, sandbox.id),
    selectLatestOfKinds(context.db, sandbox.id, {
      kinds: KINDS,
      within: WITHIN_ENTRIES,
      limit: DIAGNOSTICS_LIMITS.events,
    }),
    findConsole(context, sandbox, signal),
  ]);
  return { cloneOutput, events, ...console };
}

const MISSING = {
  asleep: 'the sandbox is asleep: a console is kept while its VM runs, and after it died',
  busy: 'the sandbox is changing its status: try again when that is over',
  deleted: 'the sandbox is being deleted, and its console with it',
  no_host: 'the sandbox failed before it had a host',
  not_kept: 'its host has no console of the last VM: it never ran, or its process was killed',
  no_response: 'the virtual machine monitor did not respond: try again',
  host_unavailable: "the sandbox's host did not respond: try again",
  host_outdated: "the sandbox's host runs an earlier release, which has no console: update the host",
  data_key_unusable: 'the data key of the sandbox does not open its console',
} as const;

type Missing = keyof typeof MISSING;

const MISSING_OF: { readonly [reported in ConsoleMissing]: Missing } = {
  asleep: 'asleep',
  busy: 'busy',
  not_kept: 'not_kept',
  sealed: 'data_key_unusable',
  no_response: 'no_response',
};

const missing = (code: Missing): Console => ({ console: null, consoleMissing: { code, message: MISSING[code] } });

async function findConsole(
  context: ServiceContext,
  { id, status, status_reason_code: reason, host_url: hostUrl }: LocatedSandboxRow,
  signal: AbortSignal,
): Promise<Console> {
  if (status === 'destroying' || status === 'deleted') return missing('deleted');
  // After a failed wake the host may have the console of a boot.
  if (status === 'stopped' && reason === null) return missing('asleep');
  if (!SANDBOX_STATES[status].settled) return missing('busy');
  if (hostUrl === null) return missing('no_host');
  try {
    // The key of a running VM is at its host.
    const dataKey = SANDBOX_STATES[status].awake ? undefined : await existingDataKey(context, id);
    const host = context.hosts.at(hostUrl);
    return consoleOf(await host.call(readConsole, { vmId: id, body: { dataKey } }, { signal }));
  } catch (error) {
    if (error instanceof UnsealError) return missing('data_key_unusable');
    if (!(error instanceof HostError)) throw error;
    return missing(MISSING_AFTER[error.code] ?? 'host_unavailable');
  }
}

const MISSING_AFTER: { readonly [code in HostFailureCode]?: Missing } = {
  route_not_found: 'host_outdated',
  vm_not_found: 'not_kept',
};

function consoleOf(found: VmConsole): Console {
  if (found.console === null) return missing(MISSING_OF[found.missing]);
  const { text, truncated, booted } = found.console;
  const shown = shownEnd(text, DIAGNOSTICS_LIMITS.consoleCharacters);
  return { console: { text: shown.text, truncated: truncated || shown.isCut, booted }, consoleMissing: null };
}
